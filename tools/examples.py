"""Puts the scripts of examples/ into the ConfigMaps of the manifests beside them: a manifest is all one has to send.

    python tools/examples.py            # write
    python tools/examples.py --check    # say what would change; exit code 1 if anything would
"""

import re
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "examples"
_BLOCK = re.compile(r"^(?P<indent> +)(?P<name>[\w.-]+\.py): \|\n(?P<text>(?:(?P=indent)  .*\n|\n)*)", re.MULTILINE)


def filled(manifest: str, folder: Path) -> str:
    """The manifest with the present text of every script that it carries."""
    def one(found: re.Match[str]) -> str:
        indent = found["indent"]
        lines = (folder / found["name"]).read_text().splitlines()
        text = "".join(f"{indent}  {line}\n" if line else "\n" for line in lines)
        return f"{indent}{found['name']}: |\n{text}"

    return _BLOCK.sub(one, manifest)


def main() -> int:
    changed = []
    for path in sorted(EXAMPLES.rglob("*.yaml")):
        before = path.read_text()
        after = filled(before, path.parent)
        if after != before:
            changed.append(path)
            if "--check" not in sys.argv[1:]:
                path.write_text(after)
    for path in changed:
        print(path.relative_to(EXAMPLES.parent))
    return 1 if changed and "--check" in sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())
