"""What the library that runs expressions cannot be taught, written in words that it knows. Pure.

Python's functions there cannot give back an optional, nor have the name of a function that there is; and the library's
`lists.range` takes as much memory as it is asked for. So these calls are written anew before an expression is compiled
for running; what is told about an expression is told of the text as it was (`expression_types`). Rejected: changing the
compiled form, which would be ours to keep in step with the library's.
"""

import re
from collections.abc import Iterator

RENAMED = {"indexOf": "indexOfAny", "lastIndexOf": "lastIndexOfAny", "lists.range": "rangeOf"}
SAID, NAMED = "said", "named"           # the entry that an optional is taken from: a map without it is none
_KEPT = {"validate": SAID, "format.named": NAMED}
_TEXT_OF = ("cel.bind(text__of, ", ", type(text__of) == map ? textOf(dyn(text__of)) : string(dyn(text__of)))")
# Macros that make a map, which the library parses but does not run: a list is made, and a map of that. What comes
# instead of the last comma between their arguments, and instead of the parenthesis at their end.
_MAPPED = {"transformMap": (", [dyn({key}), dyn(", ")]).mapOfPairs()"),
           "transformMapEntry": (", dyn(", ")).mapOfMaps()")}
_ADDRESS = re.compile(r"\b(ip|cidr)\s*\(|\.masked\b")
_TOKEN = re.compile(r"""
    (?P<text>(?:[bB]?[rR]|[rR][bB])(?:\"{3}.*?\"{3}|'{3}.*?'{3}|"[^"\n]*"|'[^'\n]*')
      | [bB]?(?:\"{3}(?:\\.|[^\\])*?\"{3}|'{3}(?:\\.|[^\\])*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))
    | (?P<remark>//[^\n]*)
    | (?P<name>[A-Za-z_]\w*(?:\s*\.\s*(?:named|range)\b)?)(?=(?P<called>\s*\())?
    | (?P<sign>.)""", re.VERBOSE | re.DOTALL)


def runnable(text: str) -> str:
    if "transformMap" in text:
        text = "".join(_mapped(list(_TOKEN.finditer(text))))
    if not any(word in text for word in ("ndexOf", "validate", "named", "range", "string")):
        return text
    return "".join(_written(text, addresses=_ADDRESS.search(text) is not None))


def _mapped(tokens: list[re.Match[str]]) -> list[str]:
    words = [token[0] for token in tokens]
    for at, token in enumerate(tokens):
        if token["called"] is None or token["name"] not in _MAPPED:
            continue
        opened = next(place for place in range(at + 1, len(tokens)) if tokens[place][0] == "(")
        commas, end = _parts(tokens, opened)
        if end and len(commas) in {2, 3}:      # anything else is no such macro, and refused
            between, after = _MAPPED[token["name"]]
            key = "".join(each[0] for each in tokens[opened + 1:commas[0]]).strip()
            words[at] = "transformList"
            words[commas[-1]], words[end] = between.format(key=key), after
    return words


def _parts(tokens: list[re.Match[str]], opened: int) -> tuple[list[int], int]:
    """Where the commas between the arguments of a call are, and its end: 0 if it has none."""
    commas: list[int] = []
    depth = 0
    for place in range(opened, len(tokens)):
        word = tokens[place][0]
        depth += (word in "([{") - (word in ")]}") if len(word) == 1 else 0
        if not depth:
            return commas, place
        if word == "," and depth == 1:
            commas.append(place)
    return [], 0


def _written(text: str, *, addresses: bool) -> Iterator[str]:
    """Token by token, with what is put behind the parenthesis that ends a call."""
    after: list[str] = []
    pending = ""
    for token in _TOKEN.finditer(text):
        word = token[0]
        if token["name"] and token["called"] is not None:
            name = "".join(word.split())
            if addresses and name == "string":
                yield _TEXT_OF[0]
                pending = _TEXT_OF[1]
                continue
            pending = f"[?'{_KEPT[name]}']" if name in _KEPT else ""
            word = RENAMED.get(name, word)
        elif word == "(":
            after.append(pending)
            if pending == _TEXT_OF[1]:
                word = ""
            pending = ""
        elif word == ")" and after:
            ended = after.pop()
            word = ended if ended == _TEXT_OF[1] else word + ended
        yield word
