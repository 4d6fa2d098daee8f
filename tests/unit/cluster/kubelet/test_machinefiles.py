"""Files of the machine, which may be missing."""

from pathlib import Path

import pytest

from trainmaster.cluster.kubelet.machinefiles import text_of


@pytest.mark.parametrize(("name", "expected"), [
    pytest.param("says", "one\ntwo\n", id="what it says, with its line ends"),
    pytest.param("odd", "caf\ufffd", id="bytes that are no text are shown as such"),
    pytest.param("missing", "", id="one that is not there says nothing"),
    pytest.param(".", "", id="a directory says nothing"),
])
def test_what_a_file_says(tmp_path: Path, name: str, expected: str) -> None:
    (tmp_path / "says").write_text("one\ntwo\n")
    (tmp_path / "odd").write_bytes(b"caf\xe9")

    assert expected == text_of(tmp_path / name)
