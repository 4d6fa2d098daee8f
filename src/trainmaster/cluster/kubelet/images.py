"""What an image is on a machine without a container engine: what a container of it finds, and the grammar of its name.

Where images come from is somebody else's (`catalog`): a registry could stand behind the same `Images` one day.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PROGRAMS = Path(__file__).parent / "programs"

_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_HOST = r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]+)?"
_TAG = r"\w[\w.-]{0,127}"
_DIGEST = r"[A-Za-z][\w.+-]*:[0-9a-fA-F]{32,}"
_NAME = re.compile(rf"(?:{_HOST}/)?{_PART}(?:/{_PART})*(?::{_TAG})?(?:@{_DIGEST})?", re.ASCII)


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
    root: Path | None = None          # a root file system of its own, in the place of the machine's
    user: int = 0
    group: int = 0
    note: str = ""                    # what stands in for what, said as an event
    warning: str = ""                 # said as a Warning event when a container is made from it


class Images(Protocol):
    """Where the node gets images from."""

    async def prepare(self, name: str, say: Callable[[str], None]) -> Image:
        """Make the image usable, installing what it needs; `say` gets progress. Raises ImageError."""
        ...


def check_name(image: str) -> None:
    """Raises ImageError for what is not the name of an image."""
    if _NAME.fullmatch(image):
        return
    lower = " A name has only small letters." if _NAME.fullmatch(image.lower()) else ""
    raise ImageError(
        "InvalidImageName",
        f'couldn\'t parse image name "{image}": it is not an image name.{lower} Write the name of a training image, '
        "such as 'kubeflow/tf-dist-mnist-test:1.0'; 'trainmaster images' lists those that this machine knows.",
    )


def repository(image: str) -> str:
    """The name without registry defaults, tag and digest: `docker.io/library/python:3.11` and `python` are the same."""
    name = image.partition("@")[0]
    head, slash, last = name.rpartition("/")
    name = head + slash + last.partition(":")[0]
    return name.removeprefix("docker.io/").removeprefix("library/")


def tag(image: str) -> str:
    """The tag, or nothing."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[2]
