"""Nodes as objects: the networks of their pods, and the taints that keep pods away."""

import re
from collections.abc import Iterator

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import addresses, causes, checks, names, placement_rules, statuses
from trainmaster.cluster.apiserver.causes import Cause

_FEATURE = re.compile(r"[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*", re.ASCII)
_LONGEST_FEATURE = 253
_NO_FEATURE = ("must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature "
               "or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes")


def defaults(node: Object) -> None:
    """The networks of a node's pods are in two fields, an old one for the first of them; the old one decides."""
    spec = node.get("spec")
    if not isinstance(spec, dict):
        return
    first, every = spec.get("podCIDR"), spec.get("podCIDRs") or []
    if first and every[:1] != [first]:
        spec["podCIDRs"] = [first]
    elif every and not first:
        spec["podCIDR"] = every[0]


def rules(node: Object, old: Object | None) -> Iterator[Cause]:
    spec = node.get("spec") or {}
    yield from _taint_rules(spec.get("taints") or [])
    if old is None:
        yield from statuses.node_amounts(node)
        status = node.get("status") or {}
        swap = ((status.get("nodeInfo") or {}).get("swap") or {}).get("capacity")
        if swap is not None and swap <= 0:
            yield causes.invalid("metadata.nodeSwapStatus.capacity", swap, "must be greater than 0")
        yield from _feature_rules(status.get("declaredFeatures") or [])
    yield from _network_rules(spec.get("podCIDRs") or [])
    was = (old or {}).get("spec") or {}
    for field, called in (("podCIDRs", "podCIDR"), ("providerID", "providerID")):
        if was.get(field) and spec.get(field) != was[field]:
            yield causes.forbidden(f"spec.{field}", f'node updates may not change {called} except from "" to valid')


def _taint_rules(taints: list[Object]) -> Iterator[Cause]:
    taken = set()
    for index, taint in enumerate(taints):
        # A real server looks for them where they were once, and clients see it.
        path, key, value = f"metadata.taints[{index}]", taint.get("key") or "", taint.get("value") or ""
        effect = taint.get("effect") or ""
        yield from names.refused(f"{path}.key", key, names.qualified(key))
        if faults := names.label_value(value):
            yield causes.invalid(f"{path}.value", value, ";".join(faults))
        if not effect:
            yield causes.required(f"{path}.effect")
        else:
            yield from checks.choice(effect, f"{path}.effect", placement_rules.EFFECTS)
        if (key, effect) in taken:
            told = {"Key": key, "Value": value, "Effect": effect, "TimeAdded": taint.get("timeAdded")}
            yield causes.duplicate(path, told, "taints must be unique by key and effect pair")
        taken.add((key, effect))


def _feature_rules(features: list[str]) -> Iterator[Cause]:
    for index, feature in enumerate(features):
        path: str = f"status.declaredFeatures[{index}]"
        if len(feature) > _LONGEST_FEATURE:
            yield causes.invalid(path, feature, f"invalid feature name {causes.quoted(feature)}: must be no more than "
                                                f"{_LONGEST_FEATURE} characters")
        elif not _FEATURE.fullmatch(feature):
            yield causes.invalid(path, feature, f"invalid feature name {causes.quoted(feature)}: {_NO_FEATURE}")
        for after in features[index + 1:index + 2]:
            if after == feature:
                yield causes.duplicate(f"status.declaredFeatures[{index + 1}]", after)
            elif after < feature:
                yield causes.invalid(f"status.declaredFeatures[{index + 1}]", after,
                                     "list must be sorted alphabetically")


def _network_rules(networks: list[str]) -> Iterator[Cause]:
    path = "spec.podCIDRs"
    for index, text in enumerate(networks):
        yield from addresses.network_rules(text, f"{path}[{index}]")
    if len(networks) < 2:
        return
    found = [addresses.network(text) for text in networks]
    if None in found:
        at = found.index(None)
        yield Cause(path, "InternalError", "Internal error: invalid PodCIDRs. failed to check with dual stack with "
                    f"error:invalid CIDR[{at}]: <nil> (invalid CIDR address: {networks[at]})")
    if sorted(0 if network is None else network.version for network in found) != [4, 6]:
        yield causes.invalid(path, networks, "may specify no more than one CIDR for each IP family")
