"""As whom, and confined by what, a pod and its containers may run."""

import re
from collections.abc import Iterable, Iterator

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import causes, checks
from trainmaster.cluster.apiserver.causes import Cause

_SYSCTL = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?", re.ASCII)
_SYSCTL_FAULT = ("must have at most 253 characters and match regex "
                 r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$")
_LONGEST_SYSCTL = 253
_OF_NETWORK = ("net.",)
_OF_MESSAGES = ("kernel.shm", "kernel.msg", "fs.mqueue.")
_LARGEST_ID = 2**31 - 1
_NOT_AN_ID = f"must be between 0 and {_LARGEST_ID}, inclusive"
_CONFINEMENTS = ("Localhost", "RuntimeDefault", "Unconfined")
_LONGEST_PROFILE = 4095


def pod_rules(context: Object, spec: Object, path: str) -> Iterator[Cause]:
    """The security context of a whole pod, at `path`."""
    for field in ("fsGroup", "runAsUser", "runAsGroup"):
        yield from _id_rules(context.get(field), f"{path}.{field}")
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        yield from _id_rules(group, f"{path}.supplementalGroups[{index}]")
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        yield causes.invalid(f"{path}.shareProcessNamespace", True,
                             "ShareProcessNamespace and HostPID cannot both be enabled")
    yield from _sysctl_rules(context.get("sysctls") or (), spec, f"{path}.sysctls")
    yield from checks.choice(context.get("fsGroupChangePolicy"), f"{path}.fsGroupChangePolicy",
                             ("Always", "OnRootMismatch"))
    yield from _confinement_rules(context, path)
    yield from checks.choice(context.get("supplementalGroupsPolicy"), f"{path}.supplementalGroupsPolicy",
                             ("Merge", "Strict"))
    yield from checks.choice(context.get("seLinuxChangePolicy"), f"{path}.seLinuxChangePolicy",
                             ("Recursive",))


def container_rules(context: Object, path: str, *, host_users: bool) -> Iterator[Cause]:
    """The security context of one container, at `path`."""
    for field in ("runAsUser", "runAsGroup"):
        yield from _id_rules(context.get(field), f"{path}.{field}")
    mount = context.get("procMount")
    yield from checks.choice(mount, f"{path}.procMount", ("Default", "Unmasked"))
    if host_users and mount == "Unmasked":
        yield causes.invalid(f"{path}.procMount", mount, "`hostUsers` must be false to use `Unmasked`")
    yield from _confinement_rules(context, path)
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            yield causes.invalid(path, context,
                                 "cannot set `allowPrivilegeEscalation` to false and `privileged` to true")
        if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
            yield causes.invalid(path, context, "cannot set `allowPrivilegeEscalation` to false and "
                                 "`capabilities.Add` CAP_SYS_ADMIN")


def _sysctl_rules(sysctls: Iterable[Object], spec: Object, path: str) -> Iterator[Cause]:
    taken = set()
    for index, sysctl in enumerate(sysctls):
        name, at = sysctl.get("name") or "", f"{path}[{index}].name"
        if not name:
            yield causes.required(at)
        elif len(name) > _LONGEST_SYSCTL or not _SYSCTL.fullmatch(name):
            yield causes.invalid(at, name, _SYSCTL_FAULT)
        elif name in taken:
            yield causes.duplicate(at, name)
        yield from _host_sysctl_rules(name, spec, at)
        taken.add(name)


def _host_sysctl_rules(name: str, spec: Object, path: str) -> Iterator[Cause]:
    """Who shares what a sysctl sets with the machine may not set it."""
    dotted = name.replace("/", ".")
    if spec.get("hostNetwork") and dotted.startswith(_OF_NETWORK):
        yield causes.invalid(path, name, "may not be specified when 'hostNetwork' is true")
    elif spec.get("hostIPC") and (dotted.startswith(_OF_MESSAGES) or dotted == "kernel.sem"):
        yield causes.invalid(path, name, "may not be specified when 'hostIPC' is true")


def _id_rules(value: Json, path: str) -> Iterator[Cause]:
    if value is not None and not 0 <= value <= _LARGEST_ID:
        yield causes.invalid(path, value, _NOT_AN_ID)


def _confinement_rules(context: Object, path: str) -> Iterator[Cause]:
    for field, called in (("seccompProfile", "seccomp"), ("appArmorProfile", "AppArmor")):
        if (profile := context.get(field)) is not None:
            yield from _profile_rules(profile, f"{path}.{field}", field, called)


def _profile_rules(profile: Object, path: str, field: str, called: str) -> Iterator[Cause]:
    kind, file, at = profile.get("type") or "", profile.get("localhostProfile"), f"{path}.localhostProfile"
    is_seccomp = called == "seccomp"
    if not kind:
        yield causes.required(f"{path}.type", f"type is required when {field} is set")
    elif kind not in _CONFINEMENTS:
        yield causes.unsupported(f"{path}.type", kind, _CONFINEMENTS)
    if kind != "Localhost":
        if file is not None and (is_seccomp or kind in _CONFINEMENTS):
            yield causes.invalid(at, profile if is_seccomp else file,
                                 f"can only be set when {called} type is Localhost")
    elif file is None or (not file and not is_seccomp):
        yield causes.required(at, f"must be set when {called} type is Localhost")
    elif is_seccomp:
        yield from checks.below(file, at)
    else:
        if file != file.strip():
            yield causes.invalid(at, file, "must not be padded with whitespace")
        if len(file.encode()) > _LONGEST_PROFILE:
            yield causes.too_long(at, _LONGEST_PROFILE)
