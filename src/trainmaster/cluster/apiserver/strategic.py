"""Strategic merge patches: a merge patch that knows how the lists of a type are merged. Pure.

Which lists are merged, and by which field their items are told apart, is written in the table of the built-in types
(`builtin`), the same that Go reads from its tags. Fields that the type does not have are merged as plain JSON; whether
they may be there is decided afterwards, on the result. Directives mean what they mean in Kubernetes, also where that
is odd: in a part of a patch that meets nothing to be merged with, an object with a directive is dropped as a whole.
"""

from collections.abc import Callable

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import failures, go_values
from trainmaster.cluster.apiserver.builtin import Field, Many, Type

DIRECTIVE, RETAIN = "$patch", "$retainKeys"
ORDER, TAKE_OUT = "$setElementOrder/", "$deleteFromPrimitiveList/"

FieldOf = Callable[[str], Field | None]
Identity = Callable[[Json], Json]


def merged(target: Json, patch: Object, type_: Type | None) -> Object:
    """The patched object; both arguments are used up. Raises Failure 400, 422 or 500."""
    return _object(target, patch, _fields(type_))


def _fields(type_: Type | None) -> FieldOf:
    return _unknown if type_ is None else type_.fields.get


def _unknown(_name: str) -> Field | None:
    return None


def _object(target: Json, patch: Object, field_of: FieldOf) -> Object:
    if DIRECTIVE in patch:
        return _directed(patch)
    result: Object = target if isinstance(target, dict) else {}
    rest = _retained(result, dict(patch))
    for key in [key for key in rest if key.startswith(ORDER)]:
        _put_in_order(result, rest, key, field_of(key.removeprefix(ORDER)))
    for key, value in rest.items():
        if key.startswith(TAKE_OUT):
            _take_out(result, key.removeprefix(TAKE_OUT), value)
        else:
            _merge(result, key, value, field_of(key))
    return result


def _directed(patch: Object) -> Object:
    if patch[DIRECTIVE] == "replace":
        return {key: value for key, value in patch.items() if key != DIRECTIVE}
    if patch[DIRECTIVE] == "delete":
        return {}
    raise _bad_directive(patch)


def _bad_directive(patch: Object) -> failures.Failure:
    return failures.unexpected(
        f"unknown patch type: {go_values.plain(patch[DIRECTIVE])} in map: {go_values.plain(patch)}")


def _retained(target: Object, patch: Object) -> Object:
    """Of the target, in place, only the keys that the patch names; the patch without that directive."""
    if RETAIN not in patch:
        return patch
    kept = patch.pop(RETAIN)
    named = [key for key, value in patch.items() if value is not None and not key.startswith((TAKE_OUT, ORDER))]
    if not isinstance(kept, list) or any(key not in kept for key in named):
        raise failures.bad_request("invalid patch format of retainKeys")
    for key in [key for key in target if key not in kept]:
        del target[key]
    return patch


def _merge(result: Object, key: str, value: Json, field: Field | None) -> None:
    if value is None:
        result.pop(key, None)
        return
    current = result.get(key)
    strategy = field.patch if field is not None else ()
    if isinstance(value, dict) and isinstance(current, dict):
        result[key] = value if "replace" in strategy else _object(current, value, _inside(field))
    elif isinstance(value, list) and isinstance(current, list):
        result[key] = _list(current, value, field) if field is not None and "merge" in strategy else value
    else:
        kept, found = _plain(value)
        if kept:
            result[key] = found
        else:
            result.pop(key, None)


def _plain(value: Json) -> tuple[bool, Json]:
    """A part of a patch that has nothing to be merged with; whether it stays, and what of it."""
    if isinstance(value, dict):
        if DIRECTIVE in value:
            return False, None
        parts = {key: _plain(item) for key, item in value.items() if item is not None}
        return True, {key: found for key, (kept, found) in parts.items() if kept}
    if isinstance(value, list):
        return True, [found for kept, found in map(_plain, value) if kept]
    return True, value


def _inside(field: Field | None) -> FieldOf:
    """The fields of what a field holds; in a map, every key holds the same."""
    if field is None or not field.type_name:
        return _unknown
    if field.many is Many.MAP:
        inner = Field(field.name, Many.ONE, "", field.type_name, (), field.zero)
        return lambda _name: inner
    return _fields(field.type)


def _list(current: list[Json], patch: list[Json], field: Field) -> list[Json]:
    by = field.merge_key
    if not current and not patch:
        return current
    _refuse_lists(current, patch)
    if not isinstance([*current, *patch][0], dict):
        both = list(dict.fromkeys([*current, *patch]))
        return _ordered(both, patch, current, lambda item: item)
    if not by:
        raise failures.unexpected(f"cannot merge lists without merge key for {field.name}")
    current, patch = _with_directives(current, patch, by)
    result, fields = list(current), _fields(field.type)
    for item in patch:
        value = _key_of(item, by)
        at = next((index for index, found in enumerate(result) if _key_of(found, by) == value), None)
        if at is None:
            result.append(item)
        else:
            result[at] = _object(result[at], item, fields)
    return _ordered(result, patch, current, lambda item: _key_of(item, by))


def _refuse_lists(current: list[Json], patch: list[Json]) -> None:
    if any(isinstance(item, list) for item in (*current, *patch)):
        raise failures.unprocessable("lists of lists are not supported")
    kinds = {isinstance(item, dict) for item in (*current, *patch)}
    if len(kinds) > 1:
        raise failures.unexpected("list element types are not identical")


def _key_of(item: Json, by: str) -> Json:
    if not isinstance(item, dict) or by not in item:
        raise failures.unexpected(f"map: {go_values.plain(item)} does not contain declared merge key: {by}")
    return item[by]


def _with_directives(current: list[Json], patch: list[Json], by: str) -> tuple[list[Json], list[Json]]:
    """Both lists after what the items of the patch that are directives say."""
    rest, replaced = [], False
    for item in patch:
        directive = item.get(DIRECTIVE)
        if DIRECTIVE not in item:
            rest.append(item)
        elif directive == "delete":
            gone = _key_of(item, by)
            current = [found for found in current if _key_of(found, by) != gone]
        elif directive == "replace":
            replaced = True
        elif directive == "merge":
            raise failures.unexpected("merging lists cannot yet be specified in the patch")
        else:
            raise _bad_directive(item)
    return (rest, []) if replaced else (current, rest)


def _take_out(result: Object, key: str, gone: Json) -> None:
    current = result.get(key)
    if not isinstance(gone, list):
        raise failures.bad_request("invalid patch format of primitive list")
    if isinstance(current, list):
        result[key] = [item for item in current if item not in gone]


def _put_in_order(result: Object, patch: Object, directive: str, field: Field | None) -> None:
    """Merge a list of the patch, which is taken out of it, and put the items in the order that the client knows."""
    order, key = patch.pop(directive), directive.removeprefix(ORDER)
    current, sent = result.get(key), patch.get(key)
    for found in (order, current, sent):
        if found is not None and not isinstance(found, list):
            raise failures.unexpected(f"expected a []interface {{}}, but received a {go_values.type_name(found)}")
    by = field.merge_key if field is not None else ""

    def identity(item: Json) -> Json:
        return _key_of(item, by) if by else item

    if order and sent:
        _refuse_disorder(sent, order, identity, by)
    if current is None and sent is None:
        return
    if not current and not sent:
        raise failures.unexpected("no elements in any of the given slices")
    if sent is None:
        whole: list[Json] = current or []
    elif current is None:
        whole = _plain(sent)[1]
    else:
        whole = _list(current, sent, field) if field is not None and "merge" in field.patch else sent
    patch.pop(key, None)
    result[key] = _ordered(whole, order, current or [], identity)


def _refuse_disorder(sent: list[Json], order: list[Json], identity: Identity, by: str) -> None:
    """What the patch sends must come in the order it names."""
    wanted = iter(order)
    for item in sent:
        if by and isinstance(item, dict) and DIRECTIVE in item:
            continue
        if not any(identity(each) == identity(item) for each in wanted):
            raise failures.unexpected(
                f"The order in patch list:\n{go_values.plain(sent)}\n doesn't match $setElementOrder list:\n"
                f"{go_values.plain(order)}\n")


def _ordered(items: list[Json], order: list[Json], before: list[Json], identity: Identity) -> list[Json]:
    """Items that the client names go in its order; those it does not know keep their places between them."""
    wanted, known = [identity(item) for item in order], [identity(item) for item in before]
    named = sorted((item for item in items if identity(item) in wanted), key=lambda item: wanted.index(identity(item)))
    others = [item for item in items if identity(item) not in wanted]
    others.sort(key=lambda item: known.index(identity(item)) if identity(item) in known else len(known))
    result: list[Json] = []
    while named and others:
        first, second = identity(others[0]), identity(named[0])
        earlier = first in known and second in known and known.index(first) < known.index(second)
        result.append(others.pop(0) if earlier else named.pop(0))
    return [*result, *others, *named]
