"""Files in which the kernel or the machine's owner says something: a machine may lack any of them."""

from pathlib import Path


def text_of(path: str | Path) -> str:
    """What a file says; nothing if it is not there, or not for us."""
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
