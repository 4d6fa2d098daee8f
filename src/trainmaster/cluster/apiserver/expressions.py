"""Expressions in CEL: compiled, bounded, and their failures in the words of Kubernetes.

The language is that of cel-expr-python, Google's own implementation in C++ with a Python face. It is loaded when the
first expression is met (10 ms, 7 MB), which on most clusters is never. An expression that runs too long is ended by the
library itself (10,000 steps of its loops), so evaluating one needs no thread. Rejected: `cel-python` (0.3 s to import,
seven packages, milliseconds where this takes microseconds) and `common-expression-language` (0.6 s, a command line of
fifteen packages with it, no bound).

Not everything that Kubernetes adds to the language is there: see docs/design/admission.md. What cannot be compiled or
evaluated for that reason is `Unusable`, and whoever asked says what that means.
"""

import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from trainmaster.api.meta import Json

LONGEST = 32 * 1024        # characters of an expression
MOST_REMEMBERED = 2048
_EXTENSIONS = (("ext_strings", "ExtStrings"), ("ext_math", "ExtMath"), ("ext_optional", "ExtOptional"),
               ("ext_bindings", "ExtBindings"), ("ext_encoders", "ExtEncoders"))
# What the library says, and what Kubernetes does.
_WORDS = (
    (re.compile(r'Key not found in map : "(.*)"', re.DOTALL), r"no such key: \1"),
    (re.compile(r"divide by zero|modulus by zero"), "division by zero"),
    (re.compile(r"Index error: index=(-?\d+) size=\d+"), r"index out of bounds: \1"),
    (re.compile(r"Iteration budget exceeded"), "operation cancelled: actual cost limit exceeded"),
)
_UNMATCHED = re.compile(r"[Nn]o matching overload|Non-CEL value|out of range for")
_CODE = re.compile(r"^[A-Z_]+: (.*?)( \[[A-Z_]+\])?$", re.DOTALL)


class Unusable(Exception):
    """An expression that is not one, or not one for us."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.malformed = "Syntax error" in why


class Failed(Exception):
    """An evaluation without a result."""


@dataclass(frozen=True, slots=True)
class Expression:
    _program: Any
    _error: Any

    def value(self, variables: Mapping[str, Any]) -> Json:
        """Raises Failed, or Unusable when values meet that our types do not let meet."""
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
    if isinstance(found, str):
        raise Unusable(found)
    return found


@lru_cache(MOST_REMEMBERED)
def _compiled(text: str, variables: Sequence[str]) -> Expression | str:
    if len(text) > LONGEST:
        return f"it is longer than {LONGEST} characters"
    try:
        environment, error = _environment(variables)
        return Expression(environment.compile(text), error)
    except ImportError as missing:
        return f"CEL is not installed here: {missing}"
    except RuntimeError as problem:
        return _told(str(problem))


@cache
def _environment(variables: Sequence[str]) -> tuple[Any, Any]:
    cel = importlib.import_module("cel_expr_python.cel")
    extensions = [getattr(importlib.import_module(f"cel_expr_python.ext.{module}"), name)()
                  for module, name in _EXTENSIONS]
    lists: dict[str, tuple[Any, Callable[..., Any]]] = {
        "isSorted": (cel.Type.BOOL, lambda items: items == sorted(items)), "sum": (cel.Type.DYN, sum),
        "min": (cel.Type.DYN, min), "max": (cel.Type.DYN, max),
    }
    functions = [cel.FunctionDecl(name, [cel.Overload(
        f"list_{name}", return_type=type_, parameters=[cel.Type.LIST], is_member=True, impl=does)])
        for name, (type_, does) in lists.items()]
    found = cel.NewEnv(variables=dict.fromkeys(variables, cel.Type.DYN), extensions=extensions, functions=functions)
    return found, cel.Type.ERROR


def _failure(said: str) -> Exception:
    return Unusable(_told(said)) if _UNMATCHED.search(said) else Failed(_told(said))


def _told(said: str) -> str:
    if (whole := _CODE.match(said)) is not None:
        said = whole[1]
    for pattern, words in _WORDS:
        if (found := pattern.search(said)) is not None:
            return found.expand(words)
    return said.strip()
