"""`podFailurePolicy`: what the end of one pod means for its Job. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from trainmaster.api.meta import Object, name_of, namespace_of
from trainmaster.cluster.controllers.workloads.pods import condition_of, phase_of, results_of

FAIL_JOB, FAIL_INDEX, IGNORE, COUNT = "FailJob", "FailIndex", "Ignore", "Count"


@dataclass(frozen=True, slots=True)
class Verdict:
    action: str = COUNT       # a failure that no rule speaks of counts
    message: str = ""


def judged(job: Object, pod: Object) -> Verdict:
    """What the policy of a job says of a pod that failed: the first rule that fits."""
    rules: Sequence[Object] = (job["spec"].get("podFailurePolicy") or {}).get("rules") or ()
    if phase_of(pod) != "Failed":
        return Verdict()      # it was deleted, and nobody can tell yet how it ends
    for number, rule in enumerate(rules):
        action, place = str(rule.get("action")), f"{namespace_of(pod)}/{name_of(pod)}"
        ending = f"matching {action} rule at index {number}"
        codes = rule.get("onExitCodes")
        if codes is not None:
            for result in results_of(pod):
                code = ((result.get("state") or {}).get("terminated") or {}).get("exitCode")
                if code and _fits(codes, str(result.get("name")), int(code)):
                    said = f"Container {result.get('name')} for pod {place} failed with exit code {code} {ending}"
                    return Verdict(action, said)
            continue
        for pattern in rule.get("onPodConditions") or ():
            found = condition_of(pod, str(pattern.get("type")))
            if found and found.get("status") == pattern.get("status", "True"):
                return Verdict(action, f"Pod {place} has condition {pattern.get('type')} {ending}")
    return Verdict()


def _fits(codes: Object, container: str, code: int) -> bool:
    if codes.get("containerName") not in (None, "", container):
        return False
    return (code in (codes.get("values") or ())) == (codes.get("operator") == "In")
