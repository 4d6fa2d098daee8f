"""How an image name becomes an environment on this machine.

There is no container engine here: an image is a name that the catalog explains. (Work in progress: the record is fixed,
the catalog follows.)
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


class ImageError(Exception):
    """The image cannot be had. `reason` is the word for the waiting container: ErrImagePull, InvalidImageName."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Image:
    """What a container of this image finds."""

    name: str
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    directory: str = "/"
    files: Mapping[str, Path] = field(default_factory=dict)   # path in the pod -> file of the host, shown read-only
    visible: tuple[Path, ...] = ()    # host directories that must be seen at their own path although homes are hidden
    warning: str = ""                 # said as a Warning event when a container is made from it


class Images(Protocol):
    """Where the node gets images from."""

    async def prepare(self, name: str, say: Callable[[str], None]) -> Image:
        """Make the image usable, installing what it needs; `say` gets progress. Raises ImageError."""
        ...
