"""Writes the tables of docs/operator.md from the code that they describe.

    python tools/operator_page.py          rewrites them; a test fails where somebody forgot

Between `<!-- NAME -->` and `<!-- end -->` everything is ours; the rest of the page is written by people.
"""

import re
import sys
from pathlib import Path

from trainmaster.operator import flags, metrics, rights

PAGE = Path(__file__).parents[1] / "docs" / "operator.md"


def rewritten(page: str) -> str:
    """The page with its tables as they should be."""
    for name, table in (("flags", flag_table()), ("old flags", old_flag_table()), ("metrics", metric_table()),
                        ("rights", right_table())):
        section = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        if not section.search(page):
            raise ValueError(f"{PAGE}: there is no place for the table of {name}")
        page = section.sub(lambda found, table=table: f"{found[1]}{table}{found[2]}", page)  # type: ignore[misc]
    return page


def flag_table() -> str:
    rows = [f"| `--{flag.name}` | {_default(flag)} | {_meaning(flag)} |" for flag in flags.FLAGS if not flag.stands_for]
    return "\n".join(["| flag | default | meaning |", "|---|---|---|", *rows, ""])


def old_flag_table() -> str:
    rows = [f"| `--{flag.name}` | {flag.meaning.rstrip('.')} | `--{flag.stands_for}` |"
            for flag in flags.FLAGS if flag.stands_for]
    return "\n".join(["| old flag | of | is now |", "|---|---|---|", *rows, ""])


def metric_table() -> str:
    rows = [f"| `{name}` | {sort.__name__.lower()} | {', '.join(f'`{label}`' for label in labels)} | {meaning} |"
            for name, sort, labels, meaning in metrics.TABLE]
    return "\n".join(["| metric | type | labels | counts |", "|---|---|---|---|", *rows, ""])


def right_table() -> str:
    rows = []
    for right in (*rights.RIGHTS, *rights.OWN_RIGHTS):
        suffix = f"/{right.subresource}" if right.subresource else ""
        kinds = ", ".join(dict.fromkeys(f"{each.plural}{suffix}" for each in right.resources))
        rows.append(f"| {kinds} | {', '.join(right.verbs)} | {right.why} |")
    return "\n".join(["| on | may | because |", "|---|---|---|", *rows, ""])


def _default(flag: flags.Flag) -> str:
    if flag.many or flag.default == "":
        return ""
    shown = f"{flag.default:g}" if isinstance(flag.default, float) else str(flag.default)
    shown = shown.lower() if isinstance(flag.default, bool) else shown
    return f"`{shown}`" + (f" (kubeflow's: {flag.upstream})" if flag.upstream else "")


def _meaning(flag: flags.Flag) -> str:
    return f"{flag.meaning} Accepted without effect: {flag.ignored}." if flag.ignored else flag.meaning


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text()))
    sys.exit(0)
