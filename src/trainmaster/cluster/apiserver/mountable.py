"""Which secrets a pod may name: those of its account, if the account's annotation says so. Pure.

Kubernetes calls the annotation deprecated and still obeys it. As there, secrets in projected volumes are let be.
"""

from collections.abc import Iterator

from trainmaster.api.meta import Json, Object, metadata, name_of

ANNOTATION = "kubernetes.io/enforce-mountable-secrets"
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_CONTAINERS = (("initContainers", "init container"), ("containers", "container"),
               ("ephemeralContainers", "ephemeral container"))


def enforced(account: Object) -> bool:
    return (metadata(account).get("annotations") or {}).get(ANNOTATION) in _TRUE


def refusal(spec: Object, account: Object) -> str:
    """The first thing that the account does not let its pods name, or nothing."""
    if not enforced(account):
        return ""
    known, pulled = _names(account.get("secrets")), _names(account.get("imagePullSecrets"))
    whose = f"is not allowed because service account {name_of(account)} does not reference that"
    for what, name in secrets_of(spec):
        if name not in known:
            return f'{what} secret.secretName="{name}" {whose} secret'
    for at, given in enumerate(spec.get("imagePullSecrets") or ()):
        if given.get("name") not in pulled:
            return f'imagePullSecrets[{at}].name="{given.get("name", "")}" {whose} imagePullSecret'
    return ""


def secrets_of(spec: Object) -> Iterator[tuple[str, str]]:
    """The secrets that volumes and variables name, each with what names it."""
    for volume in spec.get("volumes") or ():
        if source := volume.get("secret"):
            yield "volume with", str(source.get("secretName", ""))
    for field, word in _CONTAINERS:
        for container in spec.get(field) or ():
            yield from _of_container(container, f"{word} {container.get('name', '')}")


def _of_container(container: Object, what: str) -> Iterator[tuple[str, str]]:
    for variable in container.get("env") or ():
        if source := (variable.get("valueFrom") or {}).get("secretKeyRef"):
            yield f"{what} with envVar {variable.get('name', '')} referencing", str(source.get("name", ""))
    for many in container.get("envFrom") or ():
        if source := many.get("secretRef"):
            yield f"{what} with envFrom referencing", str(source.get("name", ""))


def _names(given: Json) -> frozenset[str]:
    return frozenset(str(each.get("name", "")) for each in given or ())
