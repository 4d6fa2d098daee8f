"""The commands that a page shows, and the links that it has."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "README.zh.md")


def commands(page: str) -> list[str]:
    """Every line of every shell block, without its comment."""
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    return [line.partition("#")[0].strip() for block in blocks for line in block.splitlines() if line.strip()]


def links(page: str) -> list[str]:
    return [target for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text()) if "://" not in target]
