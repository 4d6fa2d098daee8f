"""Which replicas come back, and in which state each one is.

A pod is never repaired: a replica that comes back is a new pod of the same name, made once the old one is really gone.
"""

from enum import Enum

from trainmaster.api.policy import PostMortem, RestartPolicy
from trainmaster.engine import memory
from trainmaster.engine.observed import Pod
from trainmaster.frameworks.framework import Role

# From 128 up a process was ended from outside (a signal, the OOM killer, the node): worth another try. Below, it ended
# itself and would again. Upstream since 1.5; before, only 130, 137, 138 and 143 counted.
RETRYABLE_FROM = 128


class State(Enum):
    """What a member's pod means for the job."""

    WAITING = "not running yet"
    ACTIVE = "running"
    SUCCEEDED = "ended well"
    FAILED = "ended badly, for good"
    RESTARTING = "ended badly, comes back"
    LEAVING = "sent away by a suspension or a smaller number of replicas; means nothing"


def state_of(pod: Pod, role: Role, known: PostMortem) -> State:
    if pod.uid in known.leaving:
        return State.LEAVING
    rule = role.spec.restart_policy
    if rule is not RestartPolicy.NEVER and memory.noted(known, pod):
        return State.RESTARTING  # decided and counted once; what the pod still does on its way out changes nothing
    if pod.phase == "Succeeded":
        return State.SUCCEEDED
    if pod.phase == "Failed" or is_lost(pod):
        return State.RESTARTING if comes_back(pod, rule) else State.FAILED
    return State.ACTIVE if pod.phase == "Running" else State.WAITING


def comes_back(pod: Pod, rule: RestartPolicy) -> bool:
    """Whether a replica that ended badly is started again under the rule."""
    if rule is not RestartPolicy.EXIT_CODE:
        return rule in (RestartPolicy.ALWAYS, RestartPolicy.ON_FAILURE)
    # A pod that somebody deletes ends by SIGTERM with whatever code its program then gives: that is not its verdict.
    return pod.deleting or pod.exit_code is None or pod.exit_code >= RETRYABLE_FROM


def is_lost(pod: Pod) -> bool:
    """Deleted by somebody while it was running: a drained node, a preemption, a person."""
    return pod.phase == "Running" and pod.deleting


def is_permanent(pod: Pod, role: Role) -> bool:
    """Failed with an exit code that says by itself that trying again is useless."""
    return role.spec.restart_policy is RestartPolicy.EXIT_CODE and pod.exit_code is not None
