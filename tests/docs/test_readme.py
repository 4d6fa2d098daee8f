"""The README: what it shows exists, in both languages, and on two screens."""

import re

import pytest
from tests.docs.pages import READMES, ROOT, commands, links

TWO_SCREENS = 80      # lines


@pytest.mark.parametrize("page", READMES)
def test_it_is_short_and_its_links_lead_somewhere(page: str) -> None:
    assert len((ROOT / page).read_text().splitlines()) <= TWO_SCREENS
    assert [] == [target for target in links(page) if not (ROOT / target).exists()]


def test_both_languages_show_the_same_commands() -> None:
    assert commands("README.md") == commands("README.zh.md")


def test_what_make_is_asked_for_is_there() -> None:
    """`make run` is run by tests/e2e/test_newcomer.py; `make test` is what runs this."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

    assert {"run", "test"} == {line.split()[1] for line in commands("README.md") if line.startswith("make ")}
    assert targets >= {"run", "test"}
