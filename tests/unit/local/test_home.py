"""Where a cluster lives."""

from pathlib import Path

import pytest

from trainmaster.local.home import Home


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        pytest.param({"HOME": "/h"}, "/h/.local/state/trainmaster", id="the default is below the home"),
        pytest.param({"HOME": "/h", "XDG_STATE_HOME": "/s"}, "/s/trainmaster", id="the XDG state folder is obeyed"),
        pytest.param({"HOME": "/h", "XDG_STATE_HOME": "/s", "TRAINMASTER_HOME": "/t"}, "/t", id="our own word is last"),
    ],
)
def test_home(environment: dict[str, str], expected: str) -> None:
    assert Path(expected) == Home.from_environment(environment).path


def test_a_home_is_its_owners_alone(tmp_path: Path) -> None:
    home = Home(tmp_path / "open")
    home.path.mkdir(mode=0o755)

    home.make()

    assert {0o700} == {path.stat().st_mode & 0o777 for path in (home.path, *home.path.iterdir())}
