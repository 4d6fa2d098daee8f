"""What pods ask of their isolation and this node does not have. Pure.

Who asks for a barrier that is not there is refused and told why, instead of being run without it. Two things are only
told of. A filter of system calls that is the runtime's own affair (`RuntimeDefault`): the strictest rules of a
namespace demand it of every pod, so that refusing it would refuse them all; and namespaces that are to be shared with
the machine: what a job wants with them is mostly large shared memory, and that it gets.
"""

from collections.abc import Iterator

from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet.containers import own_containers
from trainmaster.cluster.kubelet.environment import ConfigError, security_of

NOT_HONOURED = "NotHonoured"


def check_container(security: Object) -> None:
    """Raises ConfigError for a barrier that cannot be had."""
    for field, what in (("seccompProfile", "filters of system calls"), ("appArmorProfile", "profiles of AppArmor")):
        profile = security.get(field) or {}
        if profile.get("type") == "Localhost":
            raise ConfigError(f'{field} "{profile.get("localhostProfile", "")}" is not on this node, which has no '
                              f"{what}: leave it out, or use another cluster")
    if security.get("procMount") == "Unmasked":
        raise ConfigError("procMount Unmasked is not to be had on this node: leave it out")


def trouble(pod: Object, *, rootless: bool) -> str:
    """Why the pod's sandbox cannot be made; "" if nothing is in the way."""
    if pod["spec"].get("hostUsers") is False and not rootless:
        return ("spec.hostUsers is false, and this node, which is run by root, has no user namespaces for pods; leave "
                "it out, or run Trainmaster as an ordinary user, whose pods are all in one")
    return ""


def notes(pod: Object) -> str:
    """What the pod gets otherwise than it asked for; "" for most."""
    return "; ".join(_notes(pod))


def shares_memory(pod: Object) -> bool:
    """Whether the pod is to have as much shared memory as the machine."""
    return bool(pod["spec"].get("hostIPC"))


def _notes(pod: Object) -> Iterator[str]:
    if pod["spec"].get("hostPID"):
        yield "hostPID: the pod sees only its own processes, those of the machine are hidden on this node"
    if shares_memory(pod):
        yield "hostIPC: the pod has a /dev/shm as large as the machine's, but of its own"
    for field, what in (("seccompProfile", "no system call is filtered"), ("appArmorProfile", "AppArmor is not used")):
        if any((security_of(pod, one).get(field) or {}).get("type") == "RuntimeDefault" for one in own_containers(pod)):
            yield f"{field} RuntimeDefault: {what} on this node"
