"""The API server as `trainmaster up --only apiserver` runs it: a process of its own, to be killed and started again."""

import os
import select
import signal
import ssl
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from trainmaster.kube import kubeconfig
from trainmaster.kube.transport import Transport
from trainmaster.local.asked import Asked
from trainmaster.local.home import Home

START_WITHIN = 60.0
STOP_WITHIN = 20.0


@dataclass(slots=True)
class Server:
    """One home and the process that serves it, if any."""

    home: Home
    _process: subprocess.Popen[bytes] | None = None

    @classmethod
    def at(cls, folder: Path) -> "Server":
        home = Home(folder)
        home.make()
        return cls(home)

    def start(self) -> None:
        """Return when it is ready."""
        reader, writer = os.pipe()
        command = [sys.executable, "-P", "-m", "trainmaster.local.control_plane",
                   Asked(only_apiserver=True).words(),
                   "--ready-fd", str(writer)]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", pass_fds=[writer],
                start_new_session=True, env={**os.environ, "TRAINMASTER_HOME": str(self.home.path)})
        os.close(writer)
        try:
            ready = select.select([reader], [], [], START_WITHIN)[0]
            said = os.read(reader, 65536) if ready else b"nothing"
        finally:
            os.close(reader)
        assert b'"ready"' in said, f"{said!r}: {self.log.read_text()[-2000:]}"

    def kill(self) -> None:
        """Without a warning; returns when it is gone."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        assert -signal.SIGKILL == self._process.wait(STOP_WITHIN), "it had ended by itself"

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_WITHIN)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    @property
    def log(self) -> Path:
        return self.home.logs / "control-plane.log"

    @property
    def port(self) -> int:
        return int(kubeconfig.load(self.home.kubeconfig).server.rpartition(":")[2])

    @property
    def token(self) -> str:
        return kubeconfig.load(self.home.kubeconfig).token

    def transport(self) -> Transport:
        return kubeconfig.transport(kubeconfig.load(self.home.kubeconfig))

    def tls(self) -> ssl.SSLContext:
        authority = kubeconfig.load(self.home.kubeconfig).ca
        assert authority is not None
        return ssl.create_default_context(cadata=authority.decode())

    def cpu(self) -> float:
        """Seconds of processor time that it has used."""
        assert self._process is not None
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
