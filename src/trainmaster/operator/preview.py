"""What would be made of a job, without making it: the same plan as the operator's, over a cluster that has nothing."""

from datetime import datetime

from trainmaster.api import codec
from trainmaster.api.kubeflow_v1 import GROUP
from trainmaster.api.meta import Object
from trainmaster.api.validation import problems
from trainmaster.engine.actions import CreateCompanion, CreatePod, CreateService
from trainmaster.engine.observed import Observed
from trainmaster.engine.plan import plan
from trainmaster.frameworks.framework import ANYWHERE, Site
from trainmaster.frameworks.registry import framework_of, read


def preview(thing: Object, now: datetime, site: Site = ANYWHERE) -> list[Object]:
    """The pods, services and companions of a job; nothing for an object that is none, or that has a mistake."""
    group, _, _ = str(thing.get("apiVersion", "")).partition("/")
    framework = framework_of(str(thing.get("kind"))) if group == GROUP else None
    if framework is None or problems(thing):
        return []
    try:
        job = read(thing, framework, site)
    except codec.Malformed:
        return []
    made: list[Object] = []
    for action in plan(job, Observed({}, {}), now).actions:
        match action:
            case CreatePod(manifest):
                made.append({"apiVersion": "v1", "kind": "Pod", **manifest})
            case CreateService(manifest):
                made.append({"apiVersion": "v1", "kind": "Service", **manifest})
            case CreateCompanion(resource, manifest):
                made.append({"apiVersion": resource.api_version, "kind": resource.kind, **manifest})
    return made
