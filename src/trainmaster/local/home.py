"""Where the embedded cluster of one user lives on disk, and nothing of it anywhere else.

`run/` exists only while the cluster is up; the rest is kept for the next time. Two homes are two clusters.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trainmaster.sdk import embedded


@dataclass(frozen=True, slots=True)
class Home:
    """The folders and files of one cluster."""

    path: Path
    shared_envs: Path | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> "Home":
        """`TRAINMASTER_HOME`, else below the XDG state folder. `TRAINMASTER_ENVS` lets several homes share installs."""
        env = os.environ if environment is None else environment
        shared = env.get("TRAINMASTER_ENVS")
        return cls(embedded.home(env), Path(shared).expanduser().absolute() if shared else None)

    def make(self) -> None:
        """Create it for its owner only. A home that others may read is closed to them."""
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path.chmod(0o700)
        for folder in (self.keys, self.logs, self.pod_logs, self.volumes, self.run):
            folder.mkdir(exist_ok=True, mode=0o700)
        self.envs.mkdir(parents=True, exist_ok=True, mode=0o700)

    @property
    def kubeconfig(self) -> Path:
        return self.path / "kubeconfig"

    @property
    def database(self) -> Path:
        return self.path / "cluster.db"

    @property
    def keys(self) -> Path:
        return self.path / "pki"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def pod_logs(self) -> Path:
        return self.logs / "pods"

    @property
    def volumes(self) -> Path:
        return self.path / "volumes"

    @property
    def envs(self) -> Path:
        return self.shared_envs or self.path / "envs"

    @property
    def images(self) -> Path:
        """The user's own image catalog."""
        return self.path / "images.yaml"

    @property
    def roots(self) -> Path:
        """Root file systems of images that came as archives."""
        return self.path / "roots"

    @property
    def run(self) -> Path:
        return self.path / "run"
