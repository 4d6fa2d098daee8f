"""What a page shows: lines to type, manifests, programs, and links."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
READMES = ("README.md", "README.zh.md")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
# Need no more than their name.
_ALONE = {"up", "down", "status", "doctor", "images", "crds"}
_NAMES = {"trainmaster images add"}
_STANDS_FOR_A_JOB = re.compile(r"\b(JOB|NAME)\b")


def text_of(page: str) -> str:
    return (ROOT / page).read_text()


def blocks(page: str, language: str) -> list[str]:
    return [block for found, block in BLOCK.findall(text_of(page)) if found == language]


def files(page: str) -> dict[str, str]:
    """Manifests that the reader is to save: those that begin with the name of a file."""
    return {block.splitlines()[0].removeprefix("# "): block for block in blocks(page, "yaml") if block.startswith("# ")}


def commands(page: str) -> list[str]:
    """Every line of every shell block, without its comment."""
    lines = [line.partition("  #")[0].strip() for block in blocks(page, "sh") for line in block.splitlines()]
    return [line for line in lines if line]


def mentioned(page: str) -> list[str]:
    """Command lines of ours in running text that can be typed as they are; JOB and NAME stand for a job.

    The name of a command alone, such as `trainmaster run`, is no line to type.
    """
    found = re.findall(r"`(trainmaster [a-z][^`…\[]*)`", BLOCK.sub("", text_of(page)))
    lines = dict.fromkeys(_STANDS_FOR_A_JOB.sub("mnist", each).replace("\\|", "|") for each in found)
    return [line for line in lines if line not in _NAMES and (len(line.split()) > 2 or line.split()[1] in _ALONE)]


def links(page: str) -> list[str]:
    return [target for target in re.findall(r"\]\(([^)#]+)\)", text_of(page)) if "://" not in target]
