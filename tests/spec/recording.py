"""The kit's `record.py`, which does not see the token that admission gives to every pod.

The recordings were made on a server that gives none. Its volume has a random name, so two pods of the same content
would be two contents; it has to go before the kit compares them. Arguments: the kit's folder, then what `record.py`
takes.
"""

import importlib
import runpy
import sys

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver.account_admission import PREFIX


def without_token(spec: Object) -> Object:
    """A pod's specification without the volume of its token and without the mounts of it."""
    made = _without("volumes", spec)
    for group in ("initContainers", "containers"):
        if group in made:
            made[group] = [_without("volumeMounts", container) for container in made[group]]
    return made


def _without(field: str, thing: Object) -> Object:
    left = [each for each in thing.get(field) or () if not each["name"].startswith(PREFIX)]
    rest = {key: value for key, value in thing.items() if key != field}
    return {**rest, field: left} if left else rest


if __name__ == "__main__":
    kit = sys.argv.pop(1)
    sys.path.insert(0, kit)
    normalise = importlib.import_module("normalise")
    whole = normalise.pod_spec
    vars(normalise)["pod_spec"] = lambda spec: whole(without_token(spec))
    runpy.run_path(f"{kit}/record.py", run_name="__main__")
