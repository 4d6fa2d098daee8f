"""JSON values as Go prints them: parts of messages that clients know by heart."""

from trainmaster.api.meta import Json
from trainmaster.cluster.apiserver import fieldsets


def plain(value: Json) -> str:
    """`%v`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "<nil>"
    if isinstance(value, list):
        return "[" + " ".join(map(plain, value)) + "]"
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{plain(item)}" for key, item in sorted(value.items())) + "]"
    return str(value)


def syntax(value: Json) -> str:
    """`%#v`."""
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join(map(syntax, value)) + "}"
    if isinstance(value, dict):
        inner = ", ".join(f"{fieldsets.json_text(key)}:{syntax(item)}" for key, item in sorted(value.items()))
        return f"map[string]interface {{}}{{{inner}}}"
    return fieldsets.json_text(value) if isinstance(value, str) else plain(value)


def type_name(value: Json) -> str:
    """`%T`."""
    return _TYPES.get(type(value), "<nil>")


_TYPES: dict[type, str] = {bool: "bool", str: "string", int: "int64", float: "float64", list: "[]interface {}",
                           dict: "map[string]interface {}"}
