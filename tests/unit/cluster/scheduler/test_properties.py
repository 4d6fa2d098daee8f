"""What must hold for every decision on every cluster, tried on random ones and along random lives of jobs."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from operator import attrgetter
from random import Random
from typing import Any

import orjson
import pytest

from trainmaster.api.meta import Key, Object, name_of
from trainmaster.cluster.scheduler import dialects
from trainmaster.cluster.scheduler.allocate import allocate
from trainmaster.cluster.scheduler.amounts import ONE
from trainmaster.cluster.scheduler.dialects import VOLCANO
from trainmaster.cluster.scheduler.entrance import enqueue
from trainmaster.cluster.scheduler.floor import Floor
from trainmaster.cluster.scheduler.gangs import Gang
from trainmaster.cluster.scheduler.reasons import Code, Reason
from trainmaster.cluster.scheduler.settings import Decision, Settings
from trainmaster.cluster.scheduler.snapshot import GroupKey, Snapshot, read_pod
from trainmaster.cluster.scheduler.trial import Trial
from trainmaster.testing.scheduling import (
    LONG_AGO,
    NOW,
    bound,
    decided,
    gang,
    line,
    machine,
    members,
    phases,
    single,
    snapshot,
)

SEEDS = 50
ANYBODY = dialects.read_group(gang("anybody", 1), VOLCANO)
DECISIONS = 100                  # for each seed: 5,000 in all
MANY = 20                        # times as many in the long runs, 100,000 decisions
JOBS = 8                         # at once


class World:
    """Nodes, gangs and single pods that come, run and end by chance; each step is one decision, carried out."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.nodes = [machine(f"n{i}", cpu=self.chance.choice((2, 4, 8)), gpu=self.chance.choice((0, 1, 2, 4)),
                              pods=self.chance.choice((3, 8, 110)))
                      for i in range(self.chance.randint(1, 5))]
        self.queues = [line("default", weight=1), line("second", weight=self.chance.randint(1, 4))]
        self.pods: dict[str, Object] = {}
        self.groups: dict[str, Object] = {}
        self.settings = Settings(preempt=seed % 3 == 1, reclaim=seed % 3 == 2, patience=60 if seed % 2 else 0)
        self.number = 0
        self.kept = snapshot([], queues=self.queues, classes={"high": 10})      # told of every change, never made anew
        self.known: dict[tuple[str, str], bytes] = {}                           # by sort and name, as it was told

    def news(self) -> None:
        """A job arrives, or one ends, or a node is cordoned."""
        happening = self.chance.random()
        if happening < 0.55 and len(self.groups) < JOBS:
            self._job()
        elif happening < 0.6:
            self.pods.pop(f"alone-{self.number - 5}", None)
            self.number += 1
            pod = single(f"alone-{self.number}", asks={"cpu": self.chance.randint(0, 3)}, restartPolicy="Never")
            self.pods[pod["metadata"]["name"]] = pod
        elif happening < 0.9 and self.groups:
            self._end(self.chance.choice(sorted(self.groups)))
        else:
            node = self.chance.choice(self.nodes)
            node["spec"]["unschedulable"] = not node["spec"].get("unschedulable") and self.chance.random() < 0.3

    def _job(self) -> None:
        self.number += 1
        name, size = f"j{self.number:04}", self.chance.randint(1, 6)
        least = self.chance.randint(1, size)
        asks = {"cpu": self.chance.randint(0, 2), "gpu": self.chance.choice((0, 0, 1, 2))}
        asks = {what: amount for what, amount in asks.items() if amount}
        self.groups[name] = gang(name, least, queue=self.chance.choice(("default", "second")),
                                 priorityClassName=self.chance.choice(("", "high")),
                                 created=LONG_AGO if self.chance.random() < 0.8 else "2026-01-01T00:00:00Z")
        for pod in members(name, "w", size, asks=asks):
            self.pods[pod["metadata"]["name"]] = pod

    def _end(self, name: str) -> None:
        mine = [pod for pod in self.pods if pod.rpartition("-w-")[0] == name]
        if any(self.pods[pod]["spec"].get("nodeName") for pod in mine):
            del self.groups[name]
            for pod in mine:
                del self.pods[pod]

    def snapshot(self) -> Snapshot:
        return snapshot(self.nodes, self.pods.values(), self.groups.values(), self.queues, classes={"high": 10})

    def decide(self) -> Decision:
        there = self.snapshot()
        decision = decided(there, self.settings)
        assert decision == decided(there, self.settings), "the same snapshot, left as it was, the same decision"
        self._tell()
        assert _said(decision) == _said(decided(self.kept, self.settings)), "what is kept from before changes nothing"
        return decision

    def _tell(self) -> None:
        """Let the kept snapshot know what has changed since the last decision."""
        there = {(sort, name_of(thing)): orjson.dumps(thing) for sort, things in (
            ("node", self.nodes), ("pod", self.pods.values()), ("group", self.groups.values())) for thing in things}
        for sort, name in self.known.keys() - there.keys():
            if sort == "pod":
                self.kept.drop_pod(f"uid-{name}")
            else:
                del self.kept.groups[GroupKey(VOLCANO.name, Key("default", name))]
        for (sort, name), text in there.items():
            thing = orjson.loads(text)
            if self.known.get((sort, name)) == text:
                continue
            if sort == "node":
                self.kept.put_node(thing)
            elif sort == "pod":
                self.kept.put_pod(read_pod(thing, dialects.group_of(thing)))
            else:
                read = dialects.read_group(thing, VOLCANO)
                self.kept.groups[read.key] = read
        self.known = there

    def do(self, decision: Decision) -> None:
        for binding in decision.bindings:
            pod = self.pods[binding.pod.name]
            pod["spec"]["nodeName"], pod["status"]["phase"] = binding.node, "Running"
        for eviction in decision.evictions:
            evicted = self.pods[eviction.pod.name]
            del evicted["spec"]["nodeName"]
            evicted["status"]["phase"] = "Pending"
        for name, phase in phases(decision).items():
            self.groups[name]["status"] = {"phase": phase}

    def placed(self, name: str) -> int:
        return sum(1 for pod in self.pods.values() if pod["metadata"]["name"].rpartition("-w-")[0] == name
                   and pod["spec"].get("nodeName"))


def _said(decision: Decision) -> tuple[object, ...]:
    """All of it, whatever the snapshot that it was made from."""
    return (sorted(decision.bindings, key=attrgetter("uid")), sorted(decision.waiting, key=attrgetter("uid")),
            sorted(decision.evictions, key=attrgetter("uid")), decision.nominations,
            [(str(each.group.key), replace(each, group=ANYBODY)) for each in decision.verdicts])


@pytest.mark.parametrize("seed", [
    pytest.param(seed, marks=() if seed < SEEDS else (pytest.mark.faults, pytest.mark.full))
    for seed in range(SEEDS * MANY)
])
def test_along_random_lives(seed: int) -> None:
    world = World(seed)
    for _ in range(DECISIONS):
        world.news()
        decision = world.decide()
        if decision.evictions:
            _evictions_lead_to_starts(world, decision)
        _reasons_are_true(world, decision)
        world.do(decision)
        _no_node_is_over_full(world)
        _no_gang_is_partly_there(world, decision)


def _no_node_is_over_full(world: World) -> None:
    taken: dict[str, Counter[str]] = defaultdict(Counter)
    for pod in world.pods.values():
        node = pod["spec"].get("nodeName")
        if node:
            taken[node]["pods"] += 1
            for what, amount in pod["spec"]["containers"][0]["resources"]["requests"].items():
                taken[node][what] += int(amount)
    for node in world.nodes:
        for what, amount in taken[node["metadata"]["name"]].items():
            assert amount <= int(node["status"]["allocatable"].get(what, 0)), (node["metadata"]["name"], what)


def _no_gang_is_partly_there(world: World, decision: Decision) -> None:
    victims = {eviction.pod.name.rpartition("-w-")[0] for eviction in decision.evictions}
    for name, group in world.groups.items():
        placed = world.placed(name)
        assert not 0 < placed < group["spec"]["minMember"] or name in victims, (name, placed)


def _evictions_lead_to_starts(world: World, decision: Decision) -> None:
    """Done at once, the evictions let somebody start that could not before."""
    gone = {eviction.pod.name for eviction in decision.evictions} | set(bound(decision))
    pods = [pod for name, pod in world.pods.items() if name not in gone]
    placed = [{**world.pods[name], "spec": {**world.pods[name]["spec"], "nodeName": node}}
              for name, node in bound(decision).items()]
    there = snapshot(world.nodes, [*pods, *placed], world.groups.values(), world.queues, classes={"high": 10})
    found = decided(there, replace(world.settings, preempt=False, reclaim=False))
    assert found.bindings, "somebody was sent away and nobody can start"


def _reasons_are_true(world: World, decision: Decision) -> None:
    """A node with exactly what is said to be short, and the gang starts."""
    if decision.evictions or world.settings.patience:      # reasons then speak of room that is being made or kept
        return
    told = {verdict.group.key.key.name: verdict.why for verdict in decision.verdicts
            if verdict.why is not None and verdict.why.code is Code.NO_NODE_FITS and verdict.why.short
            and world.chance.random() < 0.3}      # each costs a decision of its own
    for name, others in _before(world) if told else ():
        if name in told:
            _starts_with_what_was_short(world, name, told[name], others)


def _before(world: World) -> Iterator[tuple[str, dict[str, str]]]:
    """For each gang that found no place, which pods had got one when it was tried. Those that came later took what was
    left, perhaps room that the gang counts as its own."""
    floor = Floor(Trial(world.snapshot()), world.settings, NOW)
    for _ in (*floor.gather(), *enqueue(floor)):
        pass
    known: set[Gang] = set()
    for _ in allocate(floor):
        placed = {step.pod.key.name: step.node for step in floor.trial.steps}
        for waiting in floor.why.keys() - known:
            yield waiting.group.key.key.name, placed
        known.update(floor.why)


def _starts_with_what_was_short(world: World, name: str, why: Reason, others: Mapping[str, str]) -> None:
    asks = world.pods[f"{name}-w-0"]["spec"]["containers"][0]["resources"]["requests"]
    missing = why.least - why.fitting
    offers = {what: int(amount) * missing for what, amount in asks.items()}
    for what, amount in why.short.items():
        assert amount == (missing * ONE if what == "pods" else offers[what] * ONE), (name, why)
    extra = machine("extra", **dict[str, Any]({"cpu": 0, "memory": "1Gi", "pods": missing, **offers}))
    pods = [thing for pod, thing in world.pods.items() if pod.startswith(f"{name}-w-") or thing["spec"].get("nodeName")]
    pods += [{**world.pods[pod], "spec": {**world.pods[pod]["spec"], "nodeName": node}} for pod, node in others.items()]
    there = {pod["metadata"]["name"].rpartition("-w-")[0] for pod in pods}
    groups = [group for other, group in world.groups.items() if other in there]
    found = bound(decided(snapshot([*world.nodes, extra], pods, groups, world.queues, classes={"high": 10})))
    assert sum(1 for pod in found if pod.startswith(f"{name}-w-")) >= missing, (name, why)


def test_a_waiting_gang_that_fits_the_empty_cluster_starts_when_others_end() -> None:
    """Small jobs keep coming; with room kept for the one that waits, it starts after at most one round of them."""
    settings = Settings(patience=60)
    big = gang("big", 4, created="2026-01-01T11:00:00Z")
    running = [members(f"s{i}", "w", 1, asks={"gpu": 1}, on="n", phase="Running")[0] for i in range(4)]
    groups = [gang(f"s{i}", 1, phase="Running") for i in range(4)]
    waiting = members("big", "w", 4, asks={"gpu": 1})
    for ended in range(1, 5):
        newcomers = [members(f"t{ended}-{i}", "w", 1, asks={"gpu": 1})[0] for i in range(4)]
        there = snapshot([machine("n", gpu=4)], [*running[ended:], *waiting, *newcomers],
                         [big, *groups[ended:], *(gang(f"t{ended}-{i}", 1) for i in range(4))])
        found = bound(decided(there, settings))
        expected = {f"big-w-{i}" for i in range(4)} if ended == 4 else set()
        assert expected == set(found), f"after {ended} have ended"


def _keeps_away(pod: Object, other: Object, nodes: Mapping[str, Object], where: str, home: str) -> bool:
    """Whether a pod at `home` has something against another one at `where`; worked out from the objects alone."""
    terms = pod["spec"].get("affinity", {}).get("podAntiAffinity", {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution", [])
    return any(term["labelSelector"]["matchLabels"].items() <= other["metadata"]["labels"].items()
               and nodes[where]["metadata"]["labels"].get(term["topologyKey"], where)
               == nodes[home]["metadata"]["labels"].get(term["topologyKey"], home) for term in terms)


@pytest.mark.parametrize("seed", range(40))
def test_nobody_is_near_those_who_keep_others_away_and_who_waits_has_no_place(seed: int) -> None:
    chance = Random(seed)
    nodes = {name: machine(name, labels={"zone": chance.choice("12")}, cpu=chance.randint(1, 4)) for name in "abcd"}
    pods: dict[str, Object] = {}
    for number in range(12):
        term = {"labelSelector": {"matchLabels": {"app": chance.choice("xyz")}},
                "topologyKey": chance.choice(("zone", "kubernetes.io/hostname"))}
        shy: Object = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
        pod = single(f"p{number}", labels={"app": chance.choice("xyz")}, asks={"cpu": 1},
                     priority=-chance.randint(0, 3), **shy if chance.random() < 0.3 else {})
        pods[pod["metadata"]["name"]] = pod
    first = bound(decided(snapshot(nodes.values(), list(pods.values())[:4])))
    for name, node in first.items():
        pods[name]["spec"]["nodeName"] = node

    places = {**first, **bound(decided(snapshot(nodes.values(), pods.values())))}

    def unwelcome(name: str, node: str) -> bool:
        return any(_keeps_away(pods[name], pods[other], nodes, node, home)
                   or _keeps_away(pods[other], pods[name], nodes, node, home)
                   for other, home in places.items() if other != name)

    assert [] == [name for name, node in places.items() if unwelcome(name, node)]
    full = {name for name, node in nodes.items()
            if list(places.values()).count(name) >= int(node["status"]["allocatable"]["cpu"])}
    assert [] == [(name, node) for name in pods.keys() - places.keys() for node in nodes.keys() - full
                  if not unwelcome(name, node)]
