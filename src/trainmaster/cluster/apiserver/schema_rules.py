"""Rules in CEL that stand in the schema of a custom resource (`x-kubernetes-validations`). Pure.

A rule that this server cannot compile or evaluate is not enforced; whoever writes the definition is told by a warning.
"""

import base64
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import causes, expressions
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.expressions import Failed, Unusable

RULES = "x-kubernetes-validations"
MOST_SECONDS = 0.5
EXHAUSTED = "validation failed due to running out of cost budget, no further validation rules will be run"
_VARIABLES = ("self", "oldSelf")
# A rule as Go prints it.
_GO_FORM: Object = {"Rule": "", "Message": "", "MessageExpression": "", "Reason": None, "FieldPath": "",
                    "OptionalOldSelf": None}
_OLD = re.compile(r"\boldSelf\b")
# Words of the language that fields may be called, and signs that names may have and fields in the language may not.
_WORDS = frozenset({"true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if",
                    "import", "let", "loop", "package", "namespace", "return", "var", "void", "while"})
_SIGNS = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))


@dataclass(frozen=True, slots=True)
class Rule:
    text: str
    message: str = ""
    computed: str = ""         # an expression for the message
    reason: str = ""
    below: str = ""            # the field, from here, that is to blame
    optional: bool = False     # wants to be asked about new values, with an old one that may not be there

    @property
    def transition(self) -> bool:
        return _OLD.search(self.text) is not None

    @property
    def named(self) -> str:
        return self.message.strip() or self.text.strip()


def is_fixed(rule: Object) -> bool:
    """`self == oldSelf`, which is asked so often that it is not worth a language."""
    return "".join(str(rule.get("rule", "")).split()) in {"self==oldSelf", "oldSelf==self"}


def rules_of(document: Object) -> tuple[Rule, ...]:
    """But for those that say no more than that something is fixed."""
    return tuple(
        Rule(str(rule.get("rule") or ""), str(rule.get("message") or ""), str(rule.get("messageExpression") or ""),
             str(rule.get("reason") or ""), str(rule.get("fieldPath") or ""), bool(rule.get("optionalOldSelf")))
        for rule in document.get(RULES) or () if isinstance(rule, dict) and not is_fixed(rule))


@dataclass(slots=True)
class Budget:
    """Processor time for all rules of one object: a rule is bounded, but a list may have one per item."""

    seconds: float = MOST_SECONDS
    clock: Callable[[], float] = time.thread_time
    told: bool = False

    def left(self, since: float) -> bool:
        """Whether anything is, now that what began at `since` is done."""
        self.seconds -= self.clock() - since
        return self.seconds > 0


def broken(rules: tuple[Rule, ...], document: Object, value: Json, old: Json, path: str,
           budget: Budget) -> Iterator[Cause]:
    """What a value breaks; `old` is None for a new one. A value that did not change breaks no rule about itself."""
    if budget.told:
        return
    began = budget.clock()
    yield from _broken(rules, document, value, old, path)
    if not budget.left(began):
        budget.told = True
        yield causes.invalid(path or "<nil>", causes.type_name(value), EXHAUSTED)


def _broken(rules: tuple[Rule, ...], document: Object, value: Json, old: Json, path: str) -> Iterator[Cause]:
    asked = [rule for rule in rules if not rule.optional and (old is not None if rule.transition else value != old)]
    if not asked:
        return
    given = {"self": bound(value, document), "oldSelf": bound(old, document)}
    for rule in asked:
        try:
            holds = expressions.compiled(rule.text, *_VARIABLES).value(given)
        except Unusable:
            continue
        except Failed as error:
            yield causes.invalid(path or "<nil>", causes.type_name(value), f"{error} evaluating rule: {rule.named}")
            continue
        if holds is not True:
            yield _cause(rule, value, path, _message(rule, given))


def malformed(document: Object, path: str) -> Iterator[Cause]:
    """Rules that are no expressions at all."""
    for at, rule in enumerate(document.get(RULES) or ()):
        if isinstance(rule, dict) and not is_fixed(rule):
            try:
                expressions.compiled(str(rule.get("rule") or ""), *_VARIABLES)
            except Unusable as why:
                if why.malformed:
                    shown = {name: rule.get(name[0].lower() + name[1:], empty) for name, empty in _GO_FORM.items()}
                    yield causes.invalid(f"{path}.{RULES}[{at}].rule", shown, f"compilation failed: {why}")


def unenforced(document: Json) -> Iterator[tuple[str, str]]:
    """Rules in a schema, here and below, that cannot be compiled: each with why."""
    if not isinstance(document, dict):
        return
    for rule in rules_of(document):
        try:
            if rule.optional:
                raise Unusable("optionalOldSelf is not supported")
            expressions.compiled(rule.text, *_VARIABLES)
        except Unusable as why:
            yield rule.text, str(why)
    for inner in (*(document.get("properties") or {}).values(), document.get("items"),
                  document.get("additionalProperties")):
        yield from unenforced(inner)


def bound(value: Json, document: Any) -> Any:
    """A value as expressions see it: fields by names that can be written in them, numbers and bytes as such."""
    if not isinstance(document, dict):
        return value
    if isinstance(value, dict):
        fields, others = document.get("properties") or {}, document.get("additionalProperties")
        return {escaped(key) if key in fields else key: bound(item, fields.get(key, others))
                for key, item in value.items()}
    if isinstance(value, list):
        return [bound(item, document.get("items")) for item in value]
    if document.get("type") == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if document.get("format") == "byte" and isinstance(value, str):
        with suppress(ValueError):
            return base64.b64decode(value)
    return value


def escaped(name: str) -> str:
    """A field's name as it is written in an expression."""
    if name in _WORDS:
        return f"__{name}__"
    for sign, word in _SIGNS:
        name = name.replace(sign, word)
    return name


def _message(rule: Rule, given: dict[str, Any]) -> str:
    if rule.computed:
        with suppress(Unusable, Failed):
            said = expressions.compiled(rule.computed, *_VARIABLES).value(given)
            if isinstance(said, str) and said.strip() and "\n" not in said.strip():
                return said.strip()
    return rule.message.strip() or f"failed rule: {rule.text.strip()}"


def _cause(rule: Rule, value: Json, path: str, message: str) -> Cause:
    place = f"{path}{rule.below}".lstrip(".") or "<nil>"
    match rule.reason:
        case "FieldValueForbidden":
            return causes.forbidden(place, message)
        case "FieldValueRequired":
            return causes.required(place, message)
        case "FieldValueDuplicate":
            return causes.duplicate(place, value)
        case _ if isinstance(value, dict | list):
            return Cause(place, "FieldValueInvalid", f"Invalid value: {message}")
        case _:
            return causes.invalid(place, value, message)
