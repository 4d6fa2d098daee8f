"""What the Go operator did, step by step, against what the engine decides in the same steps.

The recordings are not part of the project; where they are not, this says so and the tables of `tests/unit/engine` stand
alone. Played in a world of dictionaries: what the shell adds (conflicts, late news, crashes) is tested elsewhere.
"""

import json
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.spec import parity
from tests.unit.engine.world import World, merged

from trainmaster.api import kubeflow_v1
from trainmaster.api.groups import VOLCANO_GROUPS
from trainmaster.api.meta import Object, Resource
from trainmaster.api.validation import in_one, problems
from trainmaster.frameworks.framework import Site

# Beside the checkout, where they are kept; `pytest` says below that they are missing where they are not.
RECORDED = parity.KIT
KINDS = tuple(known.kind for known in kubeflow_v1.KINDS)


def ours(path: Path) -> bool:
    """Scenarios of the kinds that we run."""
    scenario = yaml.safe_load(path.read_text())
    return scenario["operator"] == "training" and any(made["kind"] in KINDS for made in scenario["manifests"])


SCENARIOS = [path.stem for path in sorted((RECORDED / "scenarios").glob("*.yaml")) if ours(path)]
# What an API server does, which is not here. What differs on purpose is in `parity-allowed.yaml`.
SERVER = [
    ("*", "objects.*.resources.*", "quantities are rewritten"),
    ("*", "steps*.warnings", "said by the server"),
    ("*", "objects.*.valueFrom.fieldRef.apiVersion", "filled in"),
    ("tf-unknown-fields", "objects.*", "strays are dropped before the operator sees them"),
    ("tf-refused", "steps[[]6]*", "422 of the schema"),
    ("tf-refused", "steps[[]11]*", "422 of the schema"),
    ("pytorch-refused", "steps[[]0]*", "422 for the name"),
    ("pytorch-refused", "steps[[]11]*", "422 of the schema"),
    ("tf-ttl", "steps[[]2]*", "the recording waits for the TTL within the step"),
    ("tf-ttl", "steps[[]3].deleted", "the recording waits for the TTL within the step"),
]
# What the profile of a scenario asks of the operator.
SITES = {
    "training": Site(),
    "training-volcano": Site(gang_scheduler="volcano"),
    "training-scheduler-plugins": Site(gang_scheduler="scheduler-plugins-scheduler"),
}
DENIED = '403 admission webhook "validator.{}.training-operator.kubeflow.org" denied the request: {}'
SETTLING = 1.0  # seconds that pass in each step


@pytest.mark.skipif(not SCENARIOS, reason=f"the recordings of the Go operator are not in {RECORDED}")
@pytest.mark.parametrize("name", SCENARIOS or ["no recordings"])
def test_the_engine_does_what_the_go_operator_did(name: str) -> None:
    scenario = yaml.safe_load((RECORDED / "scenarios" / f"{name}.yaml").read_text())
    golden = json.loads((RECORDED / "golden" / f"{name}.json").read_text())

    made = Player(scenario).play()
    known = [(who, where) for who, where, _ in SERVER]
    known += [(line["scenario"], line["path"]) for line in parity.allowed()]

    differing = [
        line for path, line in differences(golden, made)
        if not any(fnmatchcase(name, who) and fnmatchcase(path, where) for who, where in known)
        and not any(path.startswith(place) for place in golden.get("volatile", {}))
    ]
    assert [] == differing


class Player:
    """Plays a scenario in a `World` and notes it as the recordings do."""

    def __init__(self, scenario: Object) -> None:
        self.scenario = scenario
        self.site = SITES[scenario.get("profile") or "training"]
        self.worlds: dict[str, World] = {}
        self.world: World | None = None
        self.objects: dict[str, list[Object]] = {}
        self.clock: dict[str, list[str]] = {}
        self.events: set[str] = set()
        self.lives = 0
        self.made_by_users: dict[tuple[Resource, str], Object] = {}

    def play(self) -> Object:
        steps = [self.step(step) for step in self.scenario["steps"]]
        final = [f"{kind}/{name}" for world in self.worlds.values() if not world.gone
                 for kind, shelf in (("Pod", world.pods), ("Service", world.services)) for name in shelf]
        final += [f"{resource.kind}/{name}" for world in self.worlds.values() for resource, name in world.beside]
        final += [f"{world.thing['kind']}/{world.thing['metadata']['name']}"
                  for world in self.worlds.values() if not world.gone]
        contents = {f"{key}#{n + 1}" if n else key: made for key, versions in self.objects.items()
                    for n, made in enumerate(versions)}
        return {"steps": steps, "events": sorted(self.events), "final": sorted(final), "objects": contents}

    def step(self, step: Object) -> Object:
        action = next(iter(step))
        written = len(self.world.writes) if self.world else 0
        self.touched: set[str] = set()
        outcome = getattr(self, f"do_{action}")(step[action]) or {}
        world = self.world
        if world is None:
            return dict(outcome)
        if world.writes[:written] == [] and written:
            written = 0
        world.settle()
        if action not in ("pods", "hold"):
            world.pass_time(SETTLING)
        outcome |= self.notes(world, world.writes[written:])
        return dict(outcome)

    def notes(self, world: World, writes: list[str]) -> Object:
        made: Object = {}
        for word, verb in (("created", "create"), ("updated", "update"), ("deleted", "delete")):
            found = sorted({self.label(write, word) for write in writes
                            if write.startswith(f"{verb} ") and not self.mine(write)})
            if found:
                made[word] = found
        if world.gone and "delete job" in writes:
            everything = {f"{kind[0].upper()}{kind[1:]}/{name}" for kind, name in self.ever(world)}
            everything.add(f"{world.thing['kind']}/{world.thing['metadata']['name']}")
            made["deleted"] = sorted({*made.get("deleted", []), *everything})
        made["status"] = "absent" if world.gone else self.status(world)
        kind, name = world.thing["kind"], world.thing["metadata"]["name"]
        for event in world.events:
            self.events.add(f"{event.type} {event.reason} {kind}/{name} [{kind.lower()}-controller] {event.message}")
        return made

    def ever(self, world: World) -> set[tuple[str, str]]:
        alive: set[tuple[str, str]] = set()
        for write in world.writes:
            verb, _, rest = write.partition(" ")
            if verb == "create":
                kind, name = rest.split(" ")
                alive.add((kind, name))
        return alive

    def mine(self, write: str) -> bool:
        return write == "delete job" or write.removeprefix("delete ") in self.touched

    def label(self, write: str, word: str) -> str:
        _, kind, name = write.split(" ")
        key = f"{kind[0].upper()}{kind[1:]}/{name}"
        if word == "deleted":
            return key
        assert self.world is not None
        beside = {named: thing for (resource, named), thing in self.world.beside.items() if resource.kind == kind}
        shelf = {"pod": self.world.pods, "service": self.world.services}.get(kind, beside)
        if name not in shelf:
            return key
        content, versions = normal_form(shelf[name]), self.objects.setdefault(key, [])
        if content not in versions:
            versions.append(content)
        number = versions.index(content) + 1
        return key if number == 1 else f"{key}#{number}"

    def status(self, world: World) -> Object:
        made: Object = {}
        for key, value in (world.thing.get("status") or {}).items():
            if key == "conditions":
                value = [[c.get("type"), c.get("status"), c.get("reason"), c.get("message")] for c in value]
            elif key == "lastReconcileTime":
                value = "set"
            elif key.endswith("Time"):
                seen = self.clock.setdefault(key, [])
                if value not in seen:
                    seen.append(value)
                value = f"T{seen.index(value) + 1}"
            made[key] = value
        return made

    # steps

    def do_apply(self, names: Any) -> Object | None:
        wanted = [names] if isinstance(names, str) else names
        for manifest in self.scenario["manifests"]:
            meta = manifest["metadata"]
            name = meta.get("name") or f"{meta['generateName']}*"
            if wanted is not None and name not in wanted:
                continue
            if manifest["kind"] not in KINDS:
                resource = next(found for found in (VOLCANO_GROUPS,) if found.kind == manifest["kind"])
                self.made_by_users[resource, name] = {**manifest, "metadata": {**meta, "uid": "user"}}
                continue
            if found := problems(manifest):
                return {"refused": DENIED.format(manifest["kind"].lower(), in_one(found))}
            self.lives += 1
            before = self.world
            given = {**meta, "name": name, "namespace": "NS", "uid": f"job-{self.lives}"}
            world = World({**manifest, "metadata": given}, site=self.site, beside=dict(self.made_by_users))
            if before is not None:
                world.now = before.now
            self.worlds[name] = self.world = world
        return None

    def do_pods(self, _: Any) -> None:
        pass

    def do_run(self, patterns: Any) -> None:
        self.each(patterns, "run")

    def do_succeed(self, patterns: Any) -> None:
        self.each(patterns, "succeed")

    def do_evict(self, patterns: Any) -> None:
        self.each(patterns, "evict")

    def do_fail(self, how: Object) -> None:
        self.each(how["pods"], "fail", code=how.get("exitCode", 1))

    def do_restarted(self, how: Object) -> None:
        self.each(how["pods"], "run", restarts=how["count"])

    def do_waiting(self, how: Object) -> None:
        self.each(how["pods"], "wait", reason=how["reason"], message=how["message"])

    def do_pod_group(self, phase: str) -> None:
        assert self.world is not None
        self.world.settle()
        self.world.phase(phase)

    def do_sleep(self, seconds: float) -> None:
        if self.world is not None:
            self.world.settle()
            self.world.pass_time(seconds)

    def do_hold(self, hold: bool) -> None:
        if self.world is not None:
            self.world.hold = hold
            self.world.vanish()

    def do_patch(self, how: Object) -> Object | None:
        world = self.world
        assert world is not None
        body = how["body"]
        if how.get("subresource") == "scale":
            body = {"spec": {world.job.framework.kind.replica_field: {"Worker": body["spec"]}}}
        patched = merged(world.thing, body)
        if found := problems(patched, world.thing):
            return {"refused": DENIED.format(world.thing["kind"].lower(), in_one(found))}
        world.thing = patched
        return None

    def do_delete(self, what: str) -> None:
        world = self.world
        assert world is not None
        if what == "job":
            for kind, shelf in (("pod", world.pods), ("service", world.services)):
                world.writes += [f"delete {kind} {name}" for name in shelf]
                shelf.clear()
            world.gone = True
            return
        kind, name = what.split("/")
        self.touched.add(f"{kind.lower()} {name}")
        del (world.pods if kind == "Pod" else world.services)[name]

    def each(self, patterns: Any, verb: str, **how: Any) -> None:
        assert self.world is not None
        self.world.settle()
        for pattern in [patterns] if isinstance(patterns, str) else patterns:
            getattr(self.world, verb)(pattern, **how)


def normal_form(thing: Object) -> Object:
    """What the recordings keep of an object."""
    meta = {key: value for key, value in thing["metadata"].items()
            if key not in ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp")}
    if "ownerReferences" in meta:
        meta["ownerReferences"] = [{k: v for k, v in ref.items() if k != "uid"} for ref in meta["ownerReferences"]]
    spec = dict(thing["spec"])
    if thing["kind"] == "PodGroup":
        spec = {key: value for key, value in spec.items() if value is not None}
    if thing["kind"] == "Service":
        spec["ports"] = sorted(spec["ports"], key=lambda port: (port["name"], port["port"]))
    for group in ("containers", "initContainers"):
        if group in spec:
            spec[group] = [_without_defaults(container) for container in spec[group]]
    return {"apiVersion": thing["apiVersion"], "kind": thing["kind"], "metadata": meta, "spec": spec}


def _without_defaults(container: Object) -> Object:
    made = {key: value for key, value in container.items() if value != {}}
    tag = made.get("image", "").rpartition("/")[2].partition(":")[2]
    if made.get("imagePullPolicy") == ("IfNotPresent" if tag not in ("", "latest") else "Always"):
        del made["imagePullPolicy"]
    return made


def differences(golden: Any, made: Any, path: str = "") -> list[tuple[str, str]]:
    if golden == made or path.endswith((".seen", ".step")) or path in ("scenario", "volatile"):
        return []
    if path == "events":
        lone = sorted({*golden} ^ {*made})
        return [(f"events.{event}", f"only {'recorded' if event in golden else 'ours'}: {event}") for event in lone]
    if isinstance(golden, dict) and isinstance(made, dict):
        return [found for key in {**golden, **made}
                for found in differences(golden.get(key), made.get(key), f"{path}.{key}".lstrip("."))]
    if isinstance(golden, list) and isinstance(made, list) and len(golden) == len(made):
        return [found for n, both in enumerate(zip(golden, made, strict=True))
                for found in differences(*both, f"{path}[{n}]")]
    return [(path, f"{path}: recorded {golden!r}, ours {made!r}")]
