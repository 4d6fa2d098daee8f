"""Expressions in CEL: compiled, bounded, and their failures in the words of Kubernetes.

The language is that of cel-expr-python, Google's own implementation in C++ with a Python face. It is loaded when the
first expression is met (10 ms, 7 MB), which on most clusters is never. An expression that runs too long is ended by the
library itself (10,000 steps of its loops), so evaluating one needs no thread. Rejected: `cel-python` (0.3 s to import,
seven packages, milliseconds where this takes microseconds) and `common-expression-language` (0.6 s, a command line of
fifteen packages with it, no bound).

What Kubernetes adds to the language is in `expression_library` and `expression_access`, what its functions take
and give in `expression_types`.
What cannot be compiled is `Unusable`, and whoever writes it is told.
"""

import importlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import groupby
from typing import Any

from trainmaster.api.meta import Json
from trainmaster.cluster.apiserver import expression_access, expression_library, expression_text, expression_types

LONGEST = 32 * 1024        # characters of an expression
MOST_REMEMBERED = 2048
# Parts of the library that are asked for by name: only some have a class in Python.
_EXTENSIONS = ("strings", "math", "optional", "bindings", "encoders", "sets", "lists", "two-var-comprehensions")
# What the library says, and what Kubernetes does.
_WORDS = (
    (re.compile(r'Key not found in map : "(.*)"', re.DOTALL), r"no such key: \1"),
    (re.compile(r"divide by zero|modulus by zero"), "division by zero"),
    (re.compile(r"Index error: index=(-?\d+) size=\d+"), r"index out of bounds: \1"),
    (re.compile(r"Iteration budget exceeded"), "operation cancelled: actual cost limit exceeded"),
    (re.compile(r"[Nn]o matching overload"), "no such overload"),
)
_TYPE_WORDS = ((re.compile(r"(undefined field '[^']*') not found in struct '[^']*'"), r"\1"),
               (re.compile(r"google\.protobuf\.(Timestamp|Duration)"), lambda found: found[1].lower()),
               (re.compile(r"\bnull_type\b"), "null"), (re.compile(r"T%\d+"), "dyn"))
# Numbers of different types can be compared: the library does so when it runs, but denies it beforehand. And what
# follows from another fault is none.
_NO_FAULT = re.compile(r"'_[<>]=?_' applied to '\((int|uint|double), (int|uint|double)\)'|'\*error\*'")
# A function of a value, with the types that it was called with.
_CALLED = re.compile(r"'(?P<name>[a-z]\w*)' applied to "
                     r"'\((?P<of>[\w.]+(?:\((?:[^()]|\([^()]*\))*\))?)(?:, (?P<with>.*))?\)'")
_FOREIGN = re.compile(r"Non-CEL value|out of range for")
_CODE = re.compile(r"^[A-Z_]+: (.*?)( \[[A-Z_]+\])?$", re.DOTALL)


class Unusable(Exception):
    """An expression that is not one, or not one for us."""


class Absent(Unusable):
    """There are no expressions on this machine: the library that evaluates them is not made for it."""


class Failed(Exception):
    """An evaluation without a result."""


@dataclass(frozen=True, slots=True)
class Expression:
    _program: Any
    _error: Any

    def value(self, variables: Mapping[str, Any]) -> Json:
        """Raises Failed, or Unusable for values that the language does not have, such as numbers beyond 64 bits."""
        try:
            found = self._program.eval(data=dict(variables))
            failed, result = found.type() == self._error, found.plain_value()
        except (RuntimeError, TypeError, ValueError, OverflowError) as error:
            raise _failure(str(error)) from error
        if failed:
            raise _failure(str(result))
        return result


def compiled(text: str, *variables: str) -> Expression:
    """Raises Unusable."""
    found = _compiled(text, variables)
    if isinstance(found, Unusable):
        raise found
    return found


@lru_cache(MOST_REMEMBERED)
def _compiled(text: str, variables: Sequence[str]) -> Expression | Unusable:
    if len(text) > LONGEST:
        return Unusable(f"it is longer than {LONGEST} characters")
    try:
        environment, error = _environment(variables)
        return Expression(environment.compile(expression_text.runnable(text)), error)
    except ImportError as missing:
        return _absent(missing)
    except RuntimeError as problem:
        return Unusable(_bare(str(problem)))


def _absent(missing: ImportError) -> Absent:
    return Absent(f"CEL is not installed here: {missing}")


@dataclass(frozen=True, slots=True)
class Typed:
    """Variables and what they are: a type of CEL or a message of the pool by name, `list T`, `map T`; "": anything."""

    pool: Any
    variables: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Checked:
    """What is known of an expression without running it."""

    gives: str          # the name of a type, DYN for any
    form: bytes = b""   # as it was compiled, types and all


def typed(text: str, about: Typed) -> Checked:
    """Raises Unusable."""
    try:
        cel = importlib.import_module("cel_expr_python.cel")
    except ImportError as missing:
        raise _absent(missing) from missing
    environment = cel.NewEnv(descriptor_pool=about.pool, config=cel.NewEnvConfigFromYaml(expression_types.declared()),
                             variables={name: _type(cel, given) for name, given in about.variables.items()})
    try:
        found = environment.compile(text)
        return Checked(str(found.return_type().name()), found.serialize())
    except RuntimeError as problem:
        if why := _faults(_bare(str(problem)), text):
            raise Unusable(why) from problem
        return Checked("DYN")


@lru_cache(MOST_REMEMBERED)
def unread(function: str, text: str) -> str:
    """Why a function (`duration`, `int`, `matches` of a pattern ...) cannot read a text, or ""."""
    found = _reader(function).eval(data={"text": text})
    failed = found.type() == importlib.import_module("cel_expr_python.cel").Type.ERROR
    return _bare(str(found.plain_value())).removeprefix("invalid regular expression: ") if failed else ""


@cache
def _reader(function: str) -> Any:
    cel = importlib.import_module("cel_expr_python.cel")
    return cel.NewEnv(variables={"text": cel.Type.STRING}).compile(
        "matches('', text)" if function == "matches" else f"{function}(text)")


def _faults(said: str, text: str) -> str:
    """What is wrong with types, with their names in the language."""
    for pattern, words in _TYPE_WORDS:
        said = pattern.sub(words, said)
    said = _CALLED.sub(lambda call: call[0] if f".{call['name']}" not in text else
                       f"'{call['name']}' applied to '{call['of']}.({call['with'] or ''})'", said)
    return "\n".join(each for each in re.split(r"\n(?=ERROR: )", said) if _NO_FAULT.search(each) is None)


def _type(cel: Any, given: str) -> Any:
    shape, _, inner = given.partition(" ")
    match shape:
        case "list":
            return cel.Type.List(_type(cel, inner))
        case "map":
            return cel.Type.Map(cel.Type.STRING, _type(cel, inner))
        case "" | "google.protobuf.Value":
            return cel.Type.DYN
        case _:
            return _WELL_KNOWN[shape](cel) if shape in _WELL_KNOWN else \
                cel.Type(shape) if "." in shape else getattr(cel.Type, shape)


_WELL_KNOWN: dict[str, Any] = {"google.protobuf.Timestamp": lambda cel: cel.Type.TIMESTAMP,
                               "google.protobuf.Duration": lambda cel: cel.Type.DURATION}


@cache
def _environment(variables: Sequence[str]) -> tuple[Any, Any]:
    cel = importlib.import_module("cel_expr_python.cel")
    found = cel.NewEnv(config=_parts(cel, *_EXTENSIONS), variables=dict.fromkeys(variables, cel.Type.DYN),
                       functions=_functions())
    return found, cel.Type.ERROR


@cache
def _functions() -> list[Any]:
    """What Kubernetes adds."""
    cel = importlib.import_module("cel_expr_python.cel")
    engine = cel.NewEnv(config=_parts(cel, "optional", "regex"), variables={
        "text": cel.Type.STRING, "pattern": cel.Type.STRING, "by": cel.Type.STRING, "most": cel.Type.INT})
    replacing = engine.compile("regex.replace(text, pattern, by, most)")

    def replaced(text: str, pattern: str, by: str, most: int) -> str:
        found = replacing.eval(data={"text": text, "pattern": pattern, "by": by, "most": most})
        if found.type() == cel.Type.ERROR:
            raise ValueError(_told(str(found.plain_value())))
        return str(found.plain_value())

    ways = sorted((*expression_library.functions(), *expression_access.functions(),
                   *expression_library.searching(expression_library.found_by(replaced))), key=lambda way: way.name)
    return [cel.FunctionDecl(name, [_overload(cel, way) for way in same])
            for name, same in groupby(ways, key=lambda way: way.name)]


def _parts(cel: Any, *names: str) -> Any:
    return cel.NewEnvConfigFromYaml("\n".join(["extensions:", *(f"- name: {each}" for each in names)]))


def _overload(cel: Any, way: expression_library.Function) -> Any:
    return cel.Overload("_".join((way.name, "of" if way.member else "from", *way.takes)),
                        return_type=getattr(cel.Type, way.gives),
                        parameters=[getattr(cel.Type, each) for each in way.takes], is_member=way.member, impl=way.does)


def _failure(said: str) -> Exception:
    return Unusable(_told(said)) if _FOREIGN.search(said) else Failed(_told(said))


def _told(said: str) -> str:
    said = _bare(said)
    for pattern, words in _WORDS:
        if (found := pattern.search(said)) is not None:
            return found.expand(words)
    return said


def _bare(said: str) -> str:
    """Without the library's codes around it."""
    return (said if (whole := _CODE.match(said)) is None else whole[1]).strip()
