"""The manual says what the code does: pages are current, complete, linked, and every command line in them parses."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml
from tests.docs.pages import BLOCK, DOCS, LINK, ROOT, blocks, commands
from tools import reasons, reference

from trainmaster.cli.main import COMMANDS, cli

PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / "examples").rglob("*.md")])
CHINESE = sorted((DOCS / "zh").rglob("*.md"))
# What people come with, and what they read first.
IN_CHINESE = ("README", "start/*", "walk-throughs/*", "coming-from/*", "troubleshooting")
OURS = re.compile(r"(?<![\w./-])trainmaster\.dev/[a-z]+(?:-[a-z]+)*(?![\w-])")
# Written in the prose of the code as the group of our names, and as names of images.
NO_NAMES = {"trainmaster.dev/jax", "trainmaster.dev/lightgbm", "trainmaster.dev/mxnet", "trainmaster.dev/xgboost",
            "trainmaster.dev/environment"}


def test_the_reference_is_what_the_code_says() -> None:
    for path, text in reference.pages().items():
        there = reference.FOLDER / path
        assert there.exists(), f"docs/reference/{path} is missing: run `make docs`"
        assert text == there.read_text(), f"docs/reference/{path}: run `make docs`"
    there_are = {str(path.relative_to(reference.FOLDER)) for path in reference.FOLDER.rglob("*.md")}
    assert set() == there_are - set(reference.pages()), "run `make docs`"


def test_every_reason_is_explained() -> None:
    known = reasons.meanings()
    unexplained = {reason: place for reason, place in reasons.told_in_code().items() if reason not in known}

    assert {} == unexplained, "explain them in tools/reasons.yaml"


def test_no_reason_is_explained_that_is_never_told() -> None:
    source = "\n".join(path.read_text() for path in reference.FOLDER.parents[1].joinpath("src").rglob("*.py"))
    told = reasons.told_in_code()
    unknown = [name for name in reasons.meanings() if name not in told and name.replace("{}", "") not in source]

    assert [] == unknown


def test_every_difference_from_upstream_that_the_code_names_is_listed() -> None:
    page = (DOCS / "design" / "upstream.md").read_text()
    listed = re.findall(r"^\| (B-\d\d) \|", page, re.MULTILINE)
    named = {number for path in (ROOT / "src").rglob("*.py") for number in re.findall(r"\bB-\d\d\b", path.read_text())}

    assert set() == named - set(listed)
    assert [f"B-{number:02}" for number in range(1, 68)] == sorted(listed), "each once"


def test_every_metric_is_explained() -> None:
    """Of whoever writes some: another such place has to be taken into tools/reference.py."""
    places = {path.name for path in (ROOT / "src" / "trainmaster").rglob("*.py")
              if re.search(r"# HELP|prometheus_client", path.read_text())}
    page = (reference.FOLDER / "metrics.md").read_text()

    assert {"metrics.py", "traffic.py"} == places
    assert {"apiserver_request_total", "training_operator_jobs_created_total"} <= set(re.findall(r"`(\w+)`", page))


def test_every_setting_is_explained() -> None:
    written = yaml.safe_load(reference.SETTINGS.read_text())
    source = "\n".join(path.read_text() for path in (ROOT / "src" / "trainmaster").rglob("*.py"))
    variables = set(re.findall(r"\"(TRAINMASTER_[A-Z_]+)\"", source))
    names = set(OURS.findall(source)) - NO_NAMES

    assert set() == variables - set(written["variables"]), "explain them in tools/settings.yaml"
    assert set() == names - set(written["names"]), "explain them in tools/settings.yaml"
    assert set() == set(written["names"]) - names, "they are not there any more"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = BLOCK.sub("", page.read_text())
    for link in LINK.findall(text):
        if "://" in link or link.startswith("mailto:"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.relative_to(ROOT)}: {link}"
        if anchor:
            assert anchor in anchors(target), f"{page.relative_to(ROOT)}: {link}"


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", BLOCK.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_page_can_be_reached_from_the_first() -> None:
    seen: set[Path] = set()
    waiting = [DOCS / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen:
            continue
        seen.add(page)
        for link in LINK.findall(page.read_text()):
            target = (page.parent / link.partition("#")[0]).resolve()
            if "://" not in link and target.suffix == ".md" and target.is_relative_to(DOCS):
                waiting.append(target)

    assert [] == [str(page.relative_to(DOCS)) for page in sorted(DOCS.rglob("*.md")) if page not in seen]


def twin(page: Path) -> Path:
    return DOCS / page.relative_to(DOCS / "zh")


def test_what_is_read_first_is_there_in_chinese() -> None:
    wanted = {path for pattern in IN_CHINESE for path in DOCS.glob(f"{pattern}.md")}

    assert wanted == {twin(page) for page in CHINESE}


@pytest.mark.parametrize("page", CHINESE, ids=lambda path: str(path.relative_to(DOCS)))
def test_both_languages_show_the_same(page: Path) -> None:
    here, there = (str(each.relative_to(ROOT)) for each in (page, twin(page)))
    chapters = [re.findall(r"^#+ ", BLOCK.sub("", each.read_text()), re.MULTILINE) for each in (page, twin(page))]

    assert commands(there) == commands(here)
    assert blocks(there, "yaml") == blocks(here, "yaml")
    assert chapters[0] == chapters[1]
    for one, other in ((page, twin(page)), (twin(page), page)):
        assert other in {(one.parent / link).resolve() for link in LINK.findall(one.read_text())}, "link to the twin"


def test_messages_that_are_explained_are_the_same_in_both_languages() -> None:
    explained = [re.findall(r"^\*\*(.*?)\*\*", page.read_text(), re.MULTILINE)
                 for page in (DOCS / "troubleshooting.md", DOCS / "zh" / "troubleshooting.md")]

    assert explained[0] == explained[1]


def test_messages_that_are_explained_are_said_by_the_code() -> None:
    """Their longest words in a row, at least; … stands for what differs."""
    source = " ".join(path.read_text() for path in (ROOT / "src" / "trainmaster").rglob("*.py"))
    said = re.sub(r"\{[^{}]*\}", "…", re.sub(r"\"\s*\n\s*f?\"", "", source))
    messages = re.findall(r"^\*\*(.*?)\*\*", (DOCS / "troubleshooting.md").read_text(), re.MULTILINE)

    assert [] == [message for message in messages
                  if max(re.split(r"['….;:,]", message), key=len).strip() not in said]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_block_says_what_it_is(page: Path) -> None:
    """Else nobody knows whether it can be typed."""
    assert "" not in {language for language, _ in BLOCK.findall(page.read_text())}


def lines_shown() -> Iterator[tuple[Path, str]]:
    """Command lines of ours in blocks and in running text."""
    for page in PAGES:
        text = page.read_text()
        for language, block in BLOCK.findall(text):
            for line in block.splitlines() if language == "sh" else ():
                words = line.removeprefix("$ ").split("  #")[0].strip()
                if re.match(r"(\.venv/bin/)?trainmaster ", words):
                    yield page, words
        if DOCS / "design" not in page.parents and page.parent != reference.FOLDER:
            for words in re.findall(r"`(trainmaster [a-z][^`]*)`", BLOCK.sub("", text)):
                yield page, words


@pytest.mark.parametrize(("page", "line"), [
    pytest.param(page, line, id=f"{page.name}: {line}") for page, line in dict.fromkeys(lines_shown())
    if "[" not in line      # a line of usage, not one to type
])
def test_command_lines_that_are_shown_parse(page: Path, line: str) -> None:
    words = shlex.split(line.partition(" | ")[0].partition(" > ")[0].replace("…", ""))[1:]
    if not words or words[0].startswith("-"):
        return
    assert words[0] in COMMANDS, f"{page.name}: there is no command {words[0]}"
    found = cli.get_command(click.Context(cli), words[0])
    assert found is not None
    found.make_context(words[0], words[1:], resilient_parsing=True)
