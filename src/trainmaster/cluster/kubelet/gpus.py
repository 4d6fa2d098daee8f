"""NVIDIA GPUs of this machine: which there are, and which a container gets.

Read from the driver's own files, which say all that is needed (identity, device number); NVIDIA's library would be a
dependency for three lines of text. A container gets the device nodes of its GPUs and of nothing else, and the variable
by which CUDA orders them. Who has which is read from the records of running attempts, so a new agent knows as much as
the one before. An amount that a person only declares (`up --resource nvidia.com/gpu=4`) counts in scheduling and gives
nothing.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from trainmaster.api import quantity
from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet import records
from trainmaster.cluster.kubelet.environment import ConfigError

RESOURCE = "nvidia.com/gpu"
DRIVER = Path("/proc/driver/nvidia/gpus")
# What every CUDA program opens besides the device itself.
_COMMON = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset")


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU: how CUDA calls it, and the device nodes that a container needs for it."""

    name: str
    devices: tuple[str, ...]


def found(driver: Path = DRIVER, devices: str = "/dev") -> tuple[Gpu, ...]:
    """Those of this machine, in the driver's order."""
    seen = []
    for file in sorted(driver.glob("*/information")):
        try:
            text = file.read_text()
        except OSError:
            continue
        facts = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in text.splitlines())}
        number, name = facts.get("Device Minor", ""), facts.get("GPU UUID", "")
        node = f"{devices}/nvidia{number}"
        if number.isdecimal() and re.fullmatch(r"GPU-[0-9a-fA-F-]+", name) and Path(node).exists():
            common = tuple(path for path in _COMMON if Path(path).exists())
            seen.append((int(number), Gpu(name, (node, *common))))
    return tuple(gpu for _, gpu in sorted(seen, key=lambda pair: pair[0]))


def wanted(container: Object) -> int:
    limits = (container.get("resources") or {}).get("limits") or {}
    return int(quantity.parse(limits.get(RESOURCE, "0")))


def held(pods: Path) -> set[str]:
    """The names of those that running attempts have, as their records say."""
    names: set[str] = set()
    for shim in pods.glob(f"*/*/*/{records.SHIM}"):
        attempt = shim.parent
        if not (attempt / records.EXIT).exists():
            names |= set((records.read(str(attempt), records.SHIM) or {}).get("gpus") or ())
    return names


def given(container: Object, all_of_them: Iterable[Gpu], taken: set[str]) -> tuple[Gpu, ...]:
    """Which a container gets. Raises ConfigError when there are not so many."""
    count = wanted(container)
    free = [gpu for gpu in all_of_them if gpu.name not in taken]
    if count > len(free):
        raise ConfigError(f"{count} of {RESOURCE} wanted, {len(free)} free on this machine")
    return tuple(free[:count])


def variables(gpus: Iterable[Gpu]) -> dict[str, str]:
    """What CUDA and NVIDIA's tools read."""
    names = ",".join(gpu.name for gpu in gpus)
    return {"CUDA_VISIBLE_DEVICES": names, "NVIDIA_VISIBLE_DEVICES": names or "void"}
