"""What commands have in common towards the person."""

import errno
import os

import pytest

from trainmaster.cli.output import of_files


@pytest.mark.parametrize(("number", "file", "sentence"), [
    pytest.param(errno.ENOSPC, None, "No space left on device. Make room, or set TRAINMASTER_HOME to a folder on a "
                 "disk that has some.", id="a full disk, of which nobody says the file"),
    pytest.param(errno.EDQUOT, "/home/x", "/home/x: Disk quota exceeded. Make room, or set TRAINMASTER_HOME to a "
                 "folder on a disk that has some.", id="a person who has used up her share of the disk"),
    pytest.param(errno.EACCES, "/etc/x", "/etc/x: Permission denied. If this is about the home of the cluster, set "
                 "TRAINMASTER_HOME to a folder of your own.", id="somebody else's folder"),
])
def test_trouble_with_files(number: int, file: str | None, sentence: str) -> None:
    assert sentence == of_files(OSError(number, os.strerror(number), file))
