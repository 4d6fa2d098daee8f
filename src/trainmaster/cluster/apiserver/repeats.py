"""Keys that a body holds twice. The last one counts, as in Go; a client that asked to be told is told.

The parser keeps only one value of a repeated key, so a document printed again is another than the one that came, with
fewer colons. Most clients print as we do, which takes one look; for the others counting is nearly free; only a body
that looks suspicious is read a second time, slowly, with all its pairs.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import yaml

from trainmaster.api.meta import Json


@dataclass(frozen=True, slots=True)
class Repeats:
    """What a second look at a body found."""

    visits: Sequence[tuple[str, bool]] = ()      # JSON: every path in order, and whether its key was there before
    lines: Sequence[str] = ()                    # YAML: what is to be said
    remarks: Sequence[str] = ()                  # a JSON patch: what is to be said

    def findings(self, unknown: Sequence[str], *, typed: bool) -> list[str]:
        """Everything to be said about a body, in the words and the order of Kubernetes.

        A typed object is read once, so both kinds of findings come in the order of the document, and a field nobody
        knows is not said to be there twice. A custom one is searched for repeats first.
        """
        if not typed or self.lines or self.remarks:
            repeated = dict.fromkeys(path for path, again in self.visits if again)
            return [*self.lines, *self.remarks, *(f'duplicate field "{path}"' for path in repeated),
                    *told(sorted(unknown))]
        found: dict[str, None] = {}
        for path, again in self.visits:
            if not again and path in unknown:
                found[f'unknown field "{path}"'] = None
            elif again and not any(path == each or path.startswith((f"{each}.", f"{each}[")) for each in unknown):
                found[f'duplicate field "{path}"'] = None
        return list(found)


    def error(self, findings: Sequence[str]) -> str:
        """The findings as one text; what the YAML reader found is one error of several lines."""
        if not self.lines:
            return ", ".join(findings)
        lines = "\n  ".join(self.lines)
        return ", ".join([f"yaml: unmarshal errors:\n  {lines}", *findings[len(self.lines):]])


def told(unknown: Sequence[str]) -> list[str]:
    return [f'unknown field "{path}"' for path in unknown]


def in_json(body: bytes, value: Json) -> Repeats | None:
    """None: no key is there twice. `value` is what the body was parsed to; its depth is within limits."""
    printed = orjson.dumps(value)
    # A colon may be written as \\u003a, which the count below would miss.
    if body == printed or (body.count(b":") == printed.count(b":") and b"\\u003" not in body):
        return None
    visits = list(_visits(json.loads(body, object_pairs_hook=_Pairs), ""))
    return Repeats(visits) if any(again for _, again in visits) else None


def in_json_patch(value: Json, found: Repeats | None) -> Repeats | None:
    """The same for a list of operations, whose unknown fields are told too; `found` is what `in_json` found."""
    remarks = [f'json patch duplicate field "{path}"' for path, again in (found.visits if found else ()) if again]
    for at, operation in enumerate(value if isinstance(value, list) else ()):
        if isinstance(operation, dict):
            remarks += [f'json patch unknown field "[{at}].{key}"' for key in operation if key not in _OPERATION]
    return Repeats(remarks=remarks) if remarks else None


def in_yaml(node: yaml.Node | None) -> Repeats | None:
    lines = tuple(_lines(node)) if node is not None else ()
    return Repeats(lines=lines) if lines else None


_OPERATION = frozenset({"op", "path", "from", "value"})


class _Pairs(list[tuple[str, Any]]):
    """An object with all its pairs."""


def _visits(value: Any, path: str) -> Iterator[tuple[str, bool]]:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for key, item in value:
            inner = f"{path}.{key}" if path else key
            yield inner, key in seen
            seen.add(key)
            yield from _visits(item, inner)
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _visits(item, f"{path}[{at}]")


def _lines(node: yaml.Node) -> Iterator[str]:
    """As Go's YAML reader says it: the line is that of the value, and what is inside comes before what is around it."""
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _lines(item)
    elif isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, item in node.value:
            yield from _lines(item)
            if key.value in seen:
                yield f'line {item.start_mark.line + 1}: key "{key.value}" already set in map'
            elif isinstance(key, yaml.ScalarNode):
                seen.add(key.value)
