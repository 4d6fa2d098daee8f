"""What a job does about pods that failed, by exit code or by condition: the rules of its failure policy. Pure."""

from collections.abc import Iterator

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import causes, checks, names
from trainmaster.cluster.apiserver.causes import Cause

_MOST_RULES, _MOST_VALUES = 20, 255
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_STATUSES = ("False", "True", "Unknown")


def rules(spec: Object, path: str) -> Iterator[Cause]:
    """The faults of the failure policy of a job."""
    pod = spec["template"].get("spec") or {}
    known = {each.get("name") or "" for field in ("containers", "initContainers") for each in pod.get(field) or ()}
    found = (spec.get("podFailurePolicy") or {}).get("rules") or []
    if len(found) > _MOST_RULES:
        yield causes.too_many(f"{path}.rules", len(found), _MOST_RULES)
    for index, rule in enumerate(found):
        at = f"{path}.rules[{index}]"
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or []
        yield from _action_rules(rule.get("action") or "", f"{at}.action", spec)
        if codes is not None:
            yield from _exit_code_rules(codes, f"{at}.onExitCodes", known)
        yield from _condition_rules(conditions, f"{at}.onPodConditions")
        if codes is not None and conditions:
            yield causes.unquoted(at, "specifying both OnExitCodes and OnPodConditions is not supported")
        elif codes is None and not conditions:
            yield causes.unquoted(at, "specifying one of OnExitCodes and OnPodConditions is required")


def _action_rules(action: str, path: str, spec: Object) -> Iterator[Cause]:
    yield from _word_rules(action, path, _ACTIONS)
    if action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        yield causes.invalid(path, action, "requires the backoffLimitPerIndex to be set")


def _word_rules(word: str, path: str, words: tuple[str, ...]) -> Iterator[Cause]:
    if not word:
        yield causes.required(path, f"valid values: [{' '.join(causes.quoted(each) for each in words)}]")
    else:
        yield from checks.choice(word, path, words)


def _condition_rules(conditions: list[Object], path: str) -> Iterator[Cause]:
    if len(conditions) > _MOST_RULES:
        yield causes.too_many(path, len(conditions), _MOST_RULES)
    for index, pattern in enumerate(conditions):
        at, type_ = f"{path}[{index}]", pattern.get("type") or ""
        yield from names.refused(f"{at}.type", type_, names.qualified(type_))
        yield from _word_rules(pattern.get("status") or "", f"{at}.status", _STATUSES)


def _exit_code_rules(codes: Object, path: str, known: set[Json]) -> Iterator[Cause]:
    operator, values = codes.get("operator") or "", codes.get("values") or []
    yield from _word_rules(operator, f"{path}.operator", _OPERATORS)
    if codes.get("containerName") is not None and codes["containerName"] not in known:
        yield causes.invalid(f"{path}.containerName", codes["containerName"],
                             "must be one of the container or initContainer names in the pod template")
    if not values:
        yield causes.invalid(f"{path}.values", codes.get("values"), "at least one value is required")
    elif len(values) > _MOST_VALUES:
        yield causes.too_many(f"{path}.values", len(values), _MOST_VALUES)
    taken = set()
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            yield causes.invalid(f"{path}.values[{index}]", 0, "must not be 0 for the In operator")
        if value in taken:
            yield causes.duplicate(f"{path}.values[{index}]", value)
        taken.add(value)
    if values != sorted(values):
        yield causes.invalid(f"{path}.values", values, "must be ordered")
