"""Rules in CEL that stand in the schema of a custom resource (`x-kubernetes-validations`). Pure.

A definition with a rule that cannot be compiled is refused. Moments and durations are text in an object and more than
that in a rule (`rule_values`), so what is compiled is the rule with such fields converted before it. Where there is no
CEL (a machine that the library is not made for) rules are not enforced, and whoever writes one is told by a warning.
"""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import (
    causes,
    expression_literals,
    expression_tree,
    expressions,
    rule_types,
    rule_values,
)
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.expressions import Absent, Checked, Failed, Unusable
from trainmaster.cluster.apiserver.schema_parts import RULES

MOST_SECONDS = 0.5
EXHAUSTED = "validation failed due to running out of cost budget, no further validation rules will be run"
_VARIABLES = ("self", "oldSelf")
# A rule as Go prints it.
_GO_FORM: Object = {"Rule": "", "Message": "", "MessageExpression": "", "Reason": None, "FieldPath": "",
                    "OptionalOldSelf": None}
_ROOT = ".openAPIV3Schema"       # where the schema of whole objects is
_NO_BOOL, _NO_TEXT = "cel expression must evaluate to a bool", "must evaluate to a string"
_OLD = re.compile(r"\boldSelf\b")


@dataclass(frozen=True, slots=True)
class Rule:
    text: str
    message: str = ""
    computed: str = ""         # an expression for the message
    reason: str = ""
    below: str = ""            # the field, from here, that is to blame
    optional: bool = False     # wants to be asked about new values, with an old one that may not be there
    program: str = ""          # the text, about values as they are stored
    telling: str = ""          # likewise the expression for the message

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
    return tuple(_rule(rule, document) for rule in document.get(RULES) or ()
                 if isinstance(rule, dict) and not is_fixed(rule))


def _rule(rule: Object, document: Object) -> Rule:
    text, computed = str(rule.get("rule") or ""), str(rule.get("messageExpression") or "")
    optional = bool(rule.get("optionalOldSelf"))
    return Rule(text, str(rule.get("message") or ""), computed, str(rule.get("reason") or ""),
                str(rule.get("fieldPath") or ""), optional, _program(text, document, optional=optional),
                _program(computed, document, optional=optional))


def _program(text: str, document: Object, *, optional: bool) -> str:
    """An expression with what makes of stored values those that it is about."""
    values = rule_values.conversions(document, text, *_VARIABLES)
    old = values.get("oldSelf", "oldSelf")
    if optional:
        values["oldSelf"] = f"oldSelf == null ? optional.none() : optional.of({old})"
    elif "oldSelf" in values:
        values["oldSelf"] = f"oldSelf == null ? dyn(null) : dyn({old})"
    for name, value in values.items():
        text = f"cel.bind({name}, {value}, {text}\n)"      # a line of its own: the text may end in a remark
    return text


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
    asked = [rule for rule in rules
             if rule.optional or (old is not None if rule.transition else value != old)]
    if not asked:
        return
    given = {"self": rule_values.bound(value, document),
             "oldSelf": rule_values.bound(old, document)}
    for rule in asked:
        try:
            holds = expressions.compiled(rule.program, *_VARIABLES).value(given)
        except Unusable:
            continue
        except Failed as error:
            yield causes.invalid(path or "<nil>", causes.type_name(value), f"{error} evaluating rule: {rule.named}")
            continue
        if holds is not True:
            yield _cause(rule, value, path, _message(rule, given))


def malformed(document: Object, path: str, forms: dict[str, bytes] | None = None) -> Iterator[Cause]:
    """Rules that cannot be compiled, or their messages; `forms` gets what the others were compiled to, by place."""
    kept = {} if forms is None else forms
    for at, given in enumerate(document.get(RULES) or ()):
        if not isinstance(given, dict):
            continue
        place, rule = f"{path}.{RULES}[{at}]", _rule(given, document)
        shown = {name: given.get(name[0].lower() + name[1:], empty) for name, empty in _GO_FORM.items()}
        for name, written, program, wanted in (("rule", rule.text, rule.program, "BOOL"),
                                               ("messageExpression", rule.computed, rule.telling, "STRING")):
            if not written and name != "rule":
                continue
            try:
                kept[f"{place}.{name}"] = _form(document, path, rule, written, program, wanted)
            except Absent:
                continue
            except Unusable as why:
                prefix = "messageExpression " if name != "rule" else ""
                yield causes.invalid(f"{place}.{name}", shown, f"{prefix}{why}")
        if given.get("optionalOldSelf") is not None and not rule.transition:
            yield causes.invalid(f"{place}.optionalOldSelf", rule.optional,
                                 "may not be set if oldSelf is not used in rule")


def _form(document: Object, path: str, rule: Rule, text: str, program: str, wanted: str) -> bytes:
    """What an expression is compiled to, as it is written; it must compile as it runs, too. Raises Unusable."""
    try:
        found = Checked(wanted)
        with suppress(Absent):
            found = rule_types.checked(text, document, root=path.endswith(_ROOT), optional=rule.optional)
        unusable, uncomputable = _constants(found, text)
        if unusable:
            raise Unusable(unusable)
        expressions.compiled(text, *_VARIABLES)
        expressions.compiled(program, *_VARIABLES)
    except Absent:
        raise
    except Unusable as why:
        raise Unusable(f"compilation failed: {why}") from why
    if found.gives not in {wanted, "DYN"}:
        raise Unusable(_NO_BOOL if wanted == "BOOL" else _NO_TEXT)
    if uncomputable:
        raise Unusable(f"program instantiation failed: {uncomputable}")
    return found.form


def _constants(found: Checked, text: str) -> tuple[str, str]:
    """What is wrong with the constants in an expression; nothing where it has no compiled form."""
    with suppress(expression_tree.TooDeep):
        if found.form:
            return expression_literals.faults(expression_tree.read(found.form), text, expressions.unread)
    return "", ""


def uncorrelated(document: Json, path: str, within: str = "") -> Iterator[Cause]:
    """Rules about old values where those cannot be found: in items of lists without keys, and in atomic objects."""
    if not isinstance(document, dict):
        return
    for at, given in enumerate(document.get(RULES) or ()):
        if within and isinstance(given, dict) and (text := str(given.get("rule") or "")) and _OLD.search(text):
            yield causes.invalid(f"{path}.{RULES}[{at}].rule", text, "oldSelf cannot be used on the uncorrelatable "
                                                                     f"portion of the schema within {within}")
    inside = within or (path if document.get("x-kubernetes-map-type") == "atomic" else "")
    for name, inner in (document.get("properties") or {}).items():
        yield from uncorrelated(inner, f"{path}.properties[{name}]", inside)
    yield from uncorrelated(document.get("items"), f"{path}.items",
                            within or (path if document.get("x-kubernetes-list-type") != "map" else ""))
    yield from uncorrelated(document.get("additionalProperties"), f"{path}.additionalProperties", within)


def unenforced(document: Json) -> Iterator[tuple[str, str]]:
    """Rules in a schema, here and below, if there is no CEL here: each with why."""
    if not isinstance(document, dict):
        return
    for rule in rules_of(document):
        try:
            expressions.compiled(rule.text, *_VARIABLES)
        except Absent as why:
            yield rule.text, str(why)
        except Unusable:      # of a definition that was taken before: `malformed` says it with the next change
            continue
    for inner in (*(document.get("properties") or {}).values(), document.get("items"),
                  document.get("additionalProperties")):
        yield from unenforced(inner)


def _message(rule: Rule, given: dict[str, Any]) -> str:
    if rule.computed:
        with suppress(Unusable, Failed):
            said = expressions.compiled(rule.telling, *_VARIABLES).value(given)
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
