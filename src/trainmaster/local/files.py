"""Files of a home that are there whole or not at all, and never readable by others, not even on the way.

Somebody may read them at any moment, and the machine may stop at any: the content goes into a file beside, down to the
disk, and then takes the place of what was there.
"""

import os
from pathlib import Path


def write(path: Path, content: bytes) -> None:
    beside = path.with_name(path.name + ".new")
    beside.unlink(missing_ok=True)      # of a writer that was stopped
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
