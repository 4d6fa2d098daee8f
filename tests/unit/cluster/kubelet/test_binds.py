"""Places in volumes, as they are when a container is made: what a pod put there since somebody looked leads nowhere."""

import errno
import os
import stat
from pathlib import Path

import pytest

from trainmaster.cluster.kubelet.binds import Bind, open_source


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    made = tmp_path / "volume"
    (made / "folder" / "inner").mkdir(parents=True)
    (made / "file").write_text("content")
    (made / "link-inside").symlink_to("folder/inner")
    (made / "absolute").symlink_to("/etc")
    (made / "up").symlink_to("../../..")
    (made / "folder" / "in-the-middle").symlink_to("../../outside")
    (made / "magic").symlink_to("/proc/self/root")
    (tmp_path / "outside").mkdir()
    made.chmod(0o2775)
    return made


def opened(volume: Path, inner: str) -> Path:
    bind: Bind = {"source": str(volume / inner), "target": "/x", "readonly": False, "within": str(volume)}
    handle = open_source(bind)
    try:
        return Path(f"/proc/self/fd/{handle}").readlink()
    finally:
        os.close(handle)


@pytest.mark.parametrize(("expected", "inner"), [
    pytest.param("folder/inner", "folder/inner", id="a folder"),
    pytest.param("file", "file", id="a file"),
    pytest.param("folder/inner", "link-inside", id="a link that stays in the volume"),
    pytest.param("new/deep/x", "new/deep/x", id="what is not there is made"),
    pytest.param("folder/inner/x", "link-inside/x", id="also behind a link"),
    pytest.param("odd \n\u00fc", "odd \n\u00fc", id="whatever its name is"),
])
def test_what_a_subpath_leads_to(expected: str, inner: str, volume: Path) -> None:
    assert volume / expected == opened(volume, inner)


@pytest.mark.parametrize("inner", [
    pytest.param("absolute", id="an absolute link"),
    pytest.param("absolute/ssl", id="or behind one"),
    pytest.param("up", id="a link upwards"),
    pytest.param("folder/in-the-middle/new", id="nothing is made behind a link that leads out"),
    pytest.param("magic", id="a link of the kernel"),
])
def test_what_leads_out_of_a_volume(inner: str, volume: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))

    with pytest.raises(OSError, match="leads out of its volume") as refused:
        opened(volume, inner)

    assert errno.EXDEV == refused.value.errno
    assert [] == list((volume.parent / "outside").iterdir())
    assert before == len(list(Path("/proc/self/fd").iterdir()))


def test_what_is_made_is_like_the_volume(volume: Path) -> None:
    opened(volume, "new/deep")

    assert [0o2775] * 2 == [stat.S_IMODE((volume / path).stat().st_mode) for path in ("new", "new/deep")]
