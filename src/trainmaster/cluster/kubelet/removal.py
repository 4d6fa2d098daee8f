"""Deleting what containers leave behind, which they may have made hard to delete.

An overlay leaves a work directory that not even its owner may enter, and a container may have taken all rights from its
own files; plain `rmtree` stops there when it is not run by root.
"""

import os
import shutil
import stat
from pathlib import Path


def remove(directory: Path) -> None:
    """Delete a directory tree; what cannot be deleted is left, and no symbolic link is followed."""
    for folder, _, _ in os.walk(directory):
        _open(Path(folder))
        # os.walk lists a directory before it descends: open the ones below in time.
        for entry in _entries(folder):
            if entry.is_dir(follow_symlinks=False):
                _open(Path(entry.path))
    shutil.rmtree(directory, ignore_errors=True)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        return list(os.scandir(folder))
    except OSError:
        return []


def _open(folder: Path) -> None:
    try:
        if stat.S_IMODE(folder.lstat().st_mode) & 0o700 != 0o700:
            folder.chmod(0o700)
    except OSError:
        return
