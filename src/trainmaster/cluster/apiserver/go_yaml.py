"""YAML as Kubernetes reads it, which is YAML 1.1 as a Go library understands it.

The same text must mean the same here: `on` is true, `y` too, `1e3` is a number, but `12:30` and `2024-01-01` stay text,
which the standard loader of PyYAML would turn into 750 and a date. Aliases are refused: they let a kilobyte stand for
gigabytes, and no client writes them.
"""

import re
from typing import Any

import yaml

Unreadable = yaml.YAMLError

_BASE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_BASE):  # type: ignore[misc]  # the C form exists only where libyaml does, so its type is not known
    """SafeLoader with the scalars of Go."""


def composed(text: str) -> yaml.Node | None:
    """The nodes of the one document in `text`. Raises Unreadable."""
    if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text, Loader=_Loader)):
        raise Unreadable("it uses aliases; write the value out instead")
    found: yaml.Node | None = yaml.compose(text, Loader=_Loader)
    return found


def constructed(node: yaml.Node | None) -> Any:
    """The value of the nodes; of a repeated key, the last. Raises Unreadable, ValueError or TypeError."""
    if node is None:
        return None
    loader = _Loader("")
    try:
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _resolve(tag: str, form: str, first: str) -> None:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{form})$"), list(first))


_Loader.yaml_implicit_resolvers = {}
_resolve("bool", "y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF", "yYnNtTfFoO")
_resolve("int", r"[-+]?0b[01_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+", "-+0123456789")
_resolve("float", r"[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)"
                  r"|\.(?:nan|NaN|NAN)", "-+0123456789.")
for _empty in ("", "~", "n", "N"):
    _resolve("null", "~|null|Null|NULL|", _empty or " ")
_Loader.yaml_implicit_resolvers.setdefault("", []).append(("tag:yaml.org,2002:null", re.compile("^$")))
_Loader.add_constructor("tag:yaml.org,2002:bool",
                        lambda _loader, node: node.value.lower() in {"y", "yes", "true", "on"})
