"""What the RuntimeClass of a new pod means for it: it must be there, and says what it costs and where it runs. Pure."""

from collections.abc import Sequence

from trainmaster.api import quantity
from trainmaster.api.core import PODS
from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import failures


def complete(pod: Object, runtime: Object | None) -> None:
    """`runtime` is the class that the pod names, None if there is none; twice changes nothing. Raises Failure 403."""
    spec, wanted = pod["spec"], pod["spec"].get("runtimeClassName")
    if wanted and runtime is None:
        raise _rejected(pod, f"pod rejected: RuntimeClass {failures.quoted(wanted)} not found")
    cost = ((runtime or {}).get("overhead") or {}).get("podFixed")
    if cost is None and spec.get("overhead") is not None:
        raise _rejected(pod, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
    if cost is not None:
        if spec.get("overhead") and not _same(spec["overhead"], cost):
            raise _rejected(pod, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
        spec["overhead"] = dict(cost)
    _place(pod, (runtime or {}).get("scheduling") or {})


def _place(pod: Object, scheduling: Object) -> None:
    spec, selector = pod["spec"], scheduling.get("nodeSelector") or {}
    mine = spec.get("nodeSelector") or {}
    for key, value in sorted(selector.items()):
        if mine.get(key, value) != value:
            raise _rejected(pod, f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                                 f"pod.spec.nodeSelector[{key}] = {mine[key]}")
    if selector:
        spec["nodeSelector"] = {**mine, **selector}
    if scheduling.get("tolerations"):
        spec["tolerations"] = merged([*(spec.get("tolerations") or ()), *map(dict, scheduling["tolerations"])])


def merged(tolerations: Sequence[Object]) -> list[Object]:
    """But for those that another one tolerates as well."""
    kept: list[Object] = []
    for at, each in enumerate(tolerations):
        later = (other for other in tolerations[at + 1:] if other != each)
        if not any(_covers(other, each) for other in (*kept, *later)):
            kept.append(each)
    return kept


def _covers(one: Object, other: Object) -> bool:
    if one == other:
        return True
    if any(one.get(field) and one[field] != other.get(field) for field in ("key", "effect")):
        return False
    seconds, longer = one.get("tolerationSeconds"), other.get("tolerationSeconds")
    if one.get("effect") == "NoExecute" and seconds is not None and (longer is None or longer > seconds):
        return False
    if (one.get("operator") or "Equal") == "Exists":
        return True
    return (other.get("operator") or "Equal") == "Equal" and (one.get("value") or "") == (other.get("value") or "")


def _same(one: Json, other: Json) -> bool:
    return {name: quantity.parse(str(each)) for name, each in one.items()} == \
        {name: quantity.parse(str(each)) for name, each in other.items()}


def _rejected(pod: Object, why: str) -> failures.Failure:
    return failures.forbidden(PODS, pod["metadata"].get("name", ""), why)
