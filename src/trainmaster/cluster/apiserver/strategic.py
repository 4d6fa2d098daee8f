"""Strategic merge patches: a merge patch that knows how the lists of a type are merged. Pure.

Which lists are merged, and by which field their items are told apart, is written in the table of the built-in types
(`builtin`), the same that Go reads from its tags. Fields that the type does not have are merged as plain JSON; whether
they may be there is decided afterwards, on the result.
"""

from collections.abc import Callable, Sequence

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import failures
from trainmaster.cluster.apiserver.builtin import Field, Many, Type

DIRECTIVE, RETAIN = "$patch", "$retainKeys"
ORDER, TAKE_OUT = "$setElementOrder/", "$deleteFromPrimitiveList/"
_DIRECTIVES = frozenset({"merge", "replace", "delete"})

FieldOf = Callable[[str], Field | None]


def merged(target: Json, patch: Object, type_: Type | None) -> Object:
    """The patched object; `target` is used up. Raises Failure 400."""
    return _object(target, patch, _fields(type_))


def _fields(type_: Type | None) -> FieldOf:
    return _unknown if type_ is None else type_.fields.get


def _unknown(_name: str) -> Field | None:
    return None


def _object(target: Json, patch: Object, field_of: FieldOf) -> Object:
    directive = _directive(patch)
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != DIRECTIVE}
    if directive == "delete":
        return {}
    result: Object = target if isinstance(target, dict) else {}
    if RETAIN in patch:
        result = _retained(result, patch)
    before = {key: result[key] for key in result if ORDER + key in patch}
    for key, value in patch.items():
        if key.startswith(TAKE_OUT):
            _take_out(result, key.removeprefix(TAKE_OUT), value)
        elif not key.startswith((ORDER, "$patch", RETAIN)):
            _merge(result, key, value, field_of(key))
    for key, value in patch.items():
        if key.startswith(ORDER):
            name = key.removeprefix(ORDER)
            _put_in_order(result, name, value, patch.get(name), before.get(name), field_of(name))
    return result


def _directive(patch: Object) -> Json:
    found = patch.get(DIRECTIVE)
    if found is not None and (not isinstance(found, str) or found not in _DIRECTIVES):
        raise failures.bad_request(f"Unknown patch type found: {str(found)[:40]}")
    return found


def _retained(target: Object, patch: Object) -> Object:
    kept = patch[RETAIN]
    named = [key for key, value in patch.items() if value is not None and not key.startswith("$")]
    if not isinstance(kept, list) or any(key not in kept for key in named):
        raise failures.bad_request("invalid patch format of retainKeys")
    return {key: value for key, value in target.items() if key in kept}


def _merge(result: Object, key: str, value: Json, field: Field | None) -> None:
    if value is None:
        result.pop(key, None)
    elif isinstance(value, dict):
        if value.get(DIRECTIVE) == "delete":
            result.pop(key, None)
        elif field is not None and "replace" in field.patch:
            result[key] = value
        else:
            result[key] = _object(result.get(key), value, _inside(field))
    elif isinstance(value, list) and field is not None and "merge" in field.patch:
        current = result.get(key)
        result[key] = _list(current, value, field) if isinstance(current, list) and current else _new(value)
    else:
        result[key] = value


def _inside(field: Field | None) -> FieldOf:
    """The fields of what a field holds; in a map, every key holds the same."""
    if field is None or not field.type_name:
        return _unknown
    if field.many is Many.MAP:
        inner = Field(field.name, Many.ONE, "", field.type_name, (), field.zero)
        return lambda _name: inner
    return _fields(field.type)


def _list(current: list[Json], patch: list[Json], field: Field) -> list[Json]:
    if not field.merge_key:
        return list(dict.fromkeys([*current, *patch])) if _are_plain(current) and _are_plain(patch) else patch
    if any(isinstance(item, dict) and _directive(item) == "replace" for item in patch):
        return [item for item in patch if not (isinstance(item, dict) and DIRECTIVE in item)]
    by, fields = field.merge_key, _fields(field.type)
    result = list(current)
    for item in patch:
        if not isinstance(item, dict) or by not in item:
            raise failures.bad_request(f"map: {str(item)[:100]} does not contain declared merge key: {by}")
        at = next((index for index, found in enumerate(result)
                   if isinstance(found, dict) and found.get(by) == item[by]), None)
        if _directive(item) == "delete":
            result = [found for found in result if not (isinstance(found, dict) and found.get(by) == item[by])]
        elif at is None:
            result.append(_object({}, item, fields))
        else:
            result[at] = _object(result[at], item, fields)
    return result


def _new(patch: list[Json]) -> list[Json]:
    """A list where there was none: its items are not looked at by their key, so they need not have one."""
    return [_object({}, item, _unknown) if isinstance(item, dict) else item for item in patch
            if not (isinstance(item, dict) and _directive(item) in {"delete", "replace"})]


def _are_plain(values: Sequence[Json]) -> bool:
    return not any(isinstance(value, dict | list) for value in values)


def _take_out(result: Object, key: str, gone: Json) -> None:
    current = result.get(key)
    if not isinstance(gone, list):
        raise failures.bad_request("invalid patch format of primitive list")
    if isinstance(current, list):
        result[key] = [item for item in current if item not in gone]


def _put_in_order(result: Object, key: str, order: Json, patch: Json, before: Json, field: Field | None) -> None:
    """Items that the client names go in its order; those it does not know keep their places between them."""
    if not isinstance(order, list):
        raise failures.bad_request("invalid patch format of setElementOrder list")
    by = field.merge_key if field is not None else ""

    def identity(item: Json) -> Json:
        return item.get(by) if by and isinstance(item, dict) else item

    wanted = [identity(item) for item in order]
    sent = [identity(item) for item in patch if not (isinstance(item, dict) and item.get(DIRECTIVE))] \
        if isinstance(patch, list) else []
    if any(item not in wanted for item in sent):
        raise failures.bad_request(f"The order in patch list:\n{sent}\n doesn't match $setElementOrder list:\n"
                                   f"{wanted}\n")
    current = result.get(key)
    if isinstance(current, list):
        known = [identity(item) for item in before] if isinstance(before, list) else []
        named = sorted((item for item in current if identity(item) in wanted),
                       key=lambda item: wanted.index(identity(item)))
        others = [item for item in current if identity(item) not in wanted]
        result[key] = _woven(named, others, known, identity)


def _woven(named: list[Json], others: list[Json], known: list[Json], identity: Callable[[Json], Json]) -> list[Json]:
    """Both lists in one, by the places the items had; what had none before goes behind the others."""
    result: list[Json] = []
    left, right = list(named), list(others)
    while left and right:
        first, second = identity(left[0]), identity(right[0])
        earlier = first in known and second in known and known.index(first) < known.index(second)
        result.append(left.pop(0) if earlier else right.pop(0))
    return [*result, *left, *right]
