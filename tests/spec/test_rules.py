"""The [KEEP] and [BETTER] rules of the specification that concern every kind, one row each, for every kind.

Rules of a single place have their row there: the last tests see to it that each with a number is named somewhere, and
that each sentence which is marked without having one is listed with the tests that check it.
"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from tests.spec import parity
from tests.spec.test_upstream_tests import exists
from tests.unit.engine.stories import job_of
from tests.unit.engine.world import World

from trainmaster.api.meta import Object
from trainmaster.api.policy import HOST_PORTS, POD_ENDS_WITH
from trainmaster.engine.memory import recall, restarts

# Of each kind the roles of an ordinary job; the first decides.
CASTS = {
    "TFJob": ("Chief", "Worker"),
    "PyTorchJob": ("Master", "Worker"),
    "XGBoostJob": ("Master", "Worker"),
    "MXJob": ("Scheduler", "Worker"),
    "PaddleJob": ("Master", "Worker"),
    "JAXJob": ("Worker",),
}
KINDS = list(CASTS)
WORKER = "mnist-worker-1"
Rule = Callable[[str], None]


def running(kind: str, restart: str = "Never", *, hold: bool = False, **policy: object) -> World:
    roles = {role: (2 if role == "Worker" else 1, restart) for role in CASTS[kind]}
    world = World(job_of(kind, roles=roles, policy=policy), hold=hold)
    world.settle()
    world.run()
    world.settle()
    return world


def decided(world: World) -> str:
    return f"*-{CASTS[world.thing['kind']][0].lower()}-*"


def last(world: World) -> tuple[str, str]:
    return world.conditions()[-1]


def deadline_without_news(kind: str) -> None:
    world = running(kind, activeDeadlineSeconds=60)
    world.pass_time(61)
    assert last(world) == ("Failed", "True")


def restarts_are_counted(kind: str) -> None:
    world = running(kind, "ExitCode", backoffLimit=3)
    for _ in range(3):
        world.run()
        world.settle()
        world.fail(WORKER, code=137)
        world.settle()
    assert last(world) == ("Failed", "True")
    assert restarts(recall(world.status)) >= 2


def limits_respect_clean_up(kind: str) -> None:
    world = running(kind, activeDeadlineSeconds=60, cleanPodPolicy="None")
    there = set(world.pods)
    world.pass_time(61)
    assert set(world.pods) == there


def scaling_down_is_no_failure(kind: str) -> None:
    world = running(kind, hold=True)
    field = world.job.framework.kind.replica_field
    world.edit(**{field: {"Worker": {"replicas": 1}}})
    world.settle()
    world.fail(WORKER, code=143)
    world.settle()
    world.vanish()
    world.settle()
    assert last(world) == ("Running", "True")


def a_lost_pod_comes_back(kind: str) -> None:
    world = running(kind, "OnFailure", hold=True)
    world.mark(WORKER)
    world.settle()
    assert last(world) == ("Restarting", "True")
    world.vanish()
    world.settle()
    assert WORKER in world.pods
    assert not world.status.finished


def a_lost_pod_fails_never(kind: str) -> None:
    world = running(kind, "Never", hold=True)
    world.mark(WORKER)
    world.settle()
    assert last(world) == ("Failed", "True")


def a_permanent_code_completes(kind: str) -> None:
    world = running(kind, "ExitCode", ttlSecondsAfterFinished=60)
    world.fail(WORKER, code=1)
    world.settle()
    assert world.status.completion_time is not None
    assert not [event for event in world.events if event.reason.endswith("Restarting")]
    world.pass_time(61)
    assert world.gone


def failures_restart_in_all_kinds(kind: str) -> None:
    for policy in ("OnFailure", "Always"):
        world = running(kind, policy)
        world.evict(WORKER)
        world.settle()
        assert not world.status.finished
        assert WORKER in world.pods


def success_wins(kind: str) -> None:
    world = running(kind)
    world.succeed(decided(world))
    world.fail("*-worker-*", code=1)
    world.settle()
    assert [found for found in world.conditions() if found[0] in ("Succeeded", "Failed")] == [("Succeeded", "True")]


def the_state_of_a_paused_job(kind: str) -> None:
    world = running(kind)
    world.edit(runPolicy={"suspend": True})
    world.settle()
    assert last(world) == ("Suspended", "True")
    world.edit(runPolicy={"suspend": False})
    world.settle()
    world.run()
    world.settle()
    assert last(world) == ("Running", "True")


def created_is_written(kind: str) -> None:
    world = World(job_of(kind, roles={CASTS[kind][0]: (1, "Never")}))
    world.settle()
    assert world.conditions()[0] == ("Created", "True")


def a_pause_is_told_once(kind: str) -> None:
    world = running(kind)
    world.edit(runPolicy={"suspend": True})
    world.settle()
    world.look()
    world.look()
    assert [f"{kind}Suspended"] == [event.reason for event in world.events if event.reason.endswith("Suspended")]


def the_template_is_overruled(kind: str) -> None:
    thing = job_of(kind, roles={CASTS[kind][0]: (1, "ExitCode")})
    for spec in next(value for key, value in thing["spec"].items() if key.endswith("ReplicaSpecs")).values():
        spec["template"]["spec"]["restartPolicy"] = "Always"
    world = World(thing)
    world.settle()
    assert {"Never"} == {pod["spec"]["restartPolicy"] for pod in world.pods.values()}
    assert [event for event in world.events if event.reason == "SetPodTemplateRestartPolicy"]


def a_removed_success_stays_one(kind: str) -> None:
    if CASTS[kind][0] == "Worker":
        return  # there the last one ends the job
    world = running(kind)
    world.succeed(WORKER)
    world.settle()
    world.remove(WORKER)
    world.settle()
    assert WORKER not in world.pods


def sidecars_hold_up_nothing(kind: str) -> None:
    for said, ends in (("", ("Running", "True")), ("TrainingContainer", ("Succeeded", "True"))):
        world = with_sidecars(kind, said)
        world.settle()
        assert last(world) == ends
        assert bool(said) == (not world.pods), "what is left of the pods goes with the others that run"


def with_sidecars(kind: str, said: str) -> World:
    """Everybody has trained, and a proxy runs on in every pod."""
    roles = dict.fromkeys(CASTS[kind], (1, "Never"))
    thing = job_of(kind, roles=roles, policy={"cleanPodPolicy": "Running"})
    thing["metadata"]["annotations"] = {POD_ENDS_WITH: said}
    for spec in thing["spec"][next(field for field in thing["spec"] if field.endswith("ReplicaSpecs"))].values():
        spec["template"]["spec"]["containers"].append({"name": "proxy", "image": "example/proxy:1"})
    world = World(thing)
    world.settle()
    world.run()
    world.settle()
    for pod in world.pods.values():
        for found in pod["status"]["containerStatuses"]:
            if found["name"] != "proxy":
                found["state"] = {"terminated": {"exitCode": 0}}
    return world


def nobody_says_a_job_waits_but_its_pods(kind: str) -> None:
    world = World(job_of(kind, roles={CASTS[kind][0]: (1, "Never")}))
    world.settle()
    for pod in world.pods.values():
        pod["status"] = {"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes fit"}]}
    world.settle()
    assert [("Created", "True")] == world.conditions()
    assert ["Warning"] == [event.type for event in world.events if event.reason == "Unschedulable"]
    assert {0} == {count.active for count in world.status.replica_statuses.values()}


def failures_are_told_as_normal(kind: str) -> None:
    world = running(kind)
    world.fail(WORKER, code=1)
    world.settle()
    assert ["Normal"] == [event.type for event in world.events if event.reason == f"{kind}Failed"]


def running_pods_stay_by_default(kind: str) -> None:
    world = running(kind)
    there = set(world.pods)
    world.succeed(decided(world))
    world.settle()
    assert (last(world), there) == (("Succeeded", "True"), set(world.pods))


def a_failed_job_counts_what_still_runs(kind: str) -> None:
    world = running(kind, cleanPodPolicy="Running")
    world.fail(WORKER, code=1)
    world.settle()
    world.settle()
    assert {0} == {count.active for count in world.status.replica_statuses.values()}


def a_service_for_each_pod(kind: str) -> None:
    world = running(kind)
    assert set(world.pods) == set(world.services)


def pods_of_the_run_before_mean_nothing(kind: str) -> None:
    world = running(kind, hold=True)
    world.edit(runPolicy={"suspend": True})
    world.settle()
    world.edit(runPolicy={"suspend": False})
    world.settle()
    world.fail("*", code=137)
    world.settle()
    assert not world.status.finished


def last_words_survive(kind: str) -> None:
    world = running(kind, "ExitCode")
    world.fail(WORKER, code=137, message="CUDA out of memory")
    world.settle()
    assert ["CUDA out of memory"] == [found.last_words for found in recall(world.status).ended]


def ours_comes_after_the_users(kind: str) -> None:
    thing = job_of(kind, roles=dict.fromkeys(CASTS[kind], (2 if CASTS[kind] == ("Worker",) else 1, "Never")))
    for spec in roles_of(thing).values():
        pod = spec["template"]["spec"]
        pod["containers"].append({"name": "side", "image": "example/side:1"})
        pod["initContainers"] = [{"name": "prepare", "image": "example/prepare:1"}]
    world = World(thing)
    world.settle()
    told = {name: env_of(pod) for name, pod in world.pods.items()}
    for name, env in told.items():
        assert bool(env["side"]) == (kind != "TFJob"), "sidecars are told too, except in a TFJob"
        assert not env["prepare"], "init containers are told nothing"
        assert env["main"], name
    first = next(iter(next(iter(told.values()))["main"]))
    for spec in roles_of(thing).values():
        spec["template"]["spec"]["containers"][0]["env"] = [{"name": first, "value": "the user's"}]
    world = World(thing)
    world.settle()
    for name, pod in world.pods.items():
        values = [each.get("value") for each in pod["spec"]["containers"][0]["env"] if each["name"] == first]
        assert ["the user's", told[name]["main"][first].get("value")] == values, "the later one wins in a container"


def roles_of(thing: Object) -> dict[str, Object]:
    found: dict[str, Object] = next(value for key, value in thing["spec"].items() if key.endswith("ReplicaSpecs"))
    return found


def env_of(pod: Object) -> dict[str, dict[str, Object]]:
    """The variables by container, by name; the container that trains is `main`."""
    main = pod["spec"]["containers"][0]["name"]
    made = [*pod["spec"]["containers"], *pod["spec"]["initContainers"]]
    return {("main" if each["name"] == main else each["name"]): {one["name"]: one for one in each.get("env") or ()}
            for each in made}


def the_order_of_the_map_means_nothing(kind: str) -> None:
    forwards = {role: (2 if role == "Worker" else 1, "ExitCode") for role in CASTS[kind]}
    lives = []
    for roles in (forwards, dict(reversed(forwards.items()))):
        world = World(job_of(kind, roles=roles))
        world.settle()
        world.run()
        world.settle()
        world.fail("*", code=137)
        world.settle()
        lives.append((world.writes, world.status, world.events))
    assert lives[0] == lives[1]
    made = [write for write in lives[0][0] if write.startswith("create")]
    assert CASTS[kind][0].lower() in made[0], "the role that decides comes first"


def an_end_without_a_code_is_not_the_programs(kind: str) -> None:
    unprepared = {"phase": "Failed", "initContainerStatuses": [
        {"name": "prepare", "restartCount": 0, "state": {"terminated": {"exitCode": 1}}}]}
    lost = {"phase": "Failed", "reason": "NodeLost"}
    for ended in (unprepared, lost, {"phase": "Failed", "reason": "Evicted"}):
        world = running(kind, "ExitCode")
        before = world.pods[WORKER]["metadata"]["uid"]
        world.pods[WORKER]["status"] = ended
        world.settle()
        assert before != world.pods[WORKER]["metadata"]["uid"], ended
        assert not world.status.finished


def pods_on_hosts_have_ports_of_their_own(kind: str) -> None:
    fixed, own, other = (listening(kind, uid, said) for uid, said in (("a", ""), ("a", "Own"), ("b", "Own")))
    (usual,) = set(fixed.values())
    assert usual in told(kind, "a", "")
    # A worker of an XGBoostJob is told one port for all workers.
    shared = {name for name in own if kind == "XGBoostJob" and "worker" in name}
    assert len(own) - max(0, len(shared) - 1) == len(set(own.values()))
    assert not set(own.values()) & set(other.values())
    assert usual not in own.values()
    leader = own[f"mnist-{CASTS[kind][0].lower()}-0"]
    assert leader in told(kind, "a", "Own"), "whoever leads is looked for where it listens"
    assert own.items() <= listening(kind, "a", "Own", workers=5).items(), "more workers change nobody's port"
    assert fixed == listening(kind, "a", "Own", on_host=False), "on the network of pods there is nothing to share"


def on_hosts(kind: str, uid: str, said: str, workers: int = 3, *, on_host: bool = True) -> World:
    thing = job_of(kind, roles={role: (workers if role == "Worker" else 1, "Never") for role in CASTS[kind]})
    thing["metadata"] |= {"uid": uid, "annotations": {HOST_PORTS: said} if said else {}}
    for spec in roles_of(thing).values():
        spec["template"]["spec"]["hostNetwork"] = on_host
    world = World(thing)
    world.settle()
    return world


def listening(kind: str, uid: str, said: str, workers: int = 3, *, on_host: bool = True) -> dict[str, int]:
    """Where each pod listens, which must be where its service leads to."""
    world = on_hosts(kind, uid, said, workers, on_host=on_host)
    found = {}
    for name, pod in world.pods.items():
        (port,) = pod["spec"]["containers"][0]["ports"]
        assert [port["containerPort"]] == [each["port"] for each in world.services[name]["spec"]["ports"]]
        assert port.get("hostPort", port["containerPort"]) == port["containerPort"]
        found[name] = port["containerPort"]
    return found


def told(kind: str, uid: str, said: str) -> set[int]:
    """All numbers of ports in what the last worker is told."""
    env = on_hosts(kind, uid, said).pods["mnist-worker-2"]["spec"]["containers"][0]["env"]
    return {int(number) for each in env for number in re.findall(r"\d{4,5}", str(each.get("value")))}


def the_whole_list_of_conditions(kind: str) -> None:
    """With reasons; what upstream's tests ask for is only whether one of them is there (§10.10)."""
    created, ran = (f"{kind}Created", "True"), (f"{kind}Running", "False")
    lists = {}
    for what, policy in (("succeed", "Never"), ("fail", "Never"), ("restart", "ExitCode")):
        world = running(kind, policy)
        if what == "succeed":
            world.succeed("*")
        else:
            world.fail("*" if what == "restart" else WORKER, code=137)
        world.settle()
        lists[what] = [(found.reason, found.status) for found in world.status.conditions]
    assert {
        "succeed": [created, ran, (f"{kind}Succeeded", "True")],
        "fail": [created, ran, (f"{kind}Failed", "True")],
        "restart": [created, (f"{kind}Restarting", "True")],
    } == lists


RULES: dict[str, Rule] = {
    "§5.5, §10.10: the whole list of conditions": the_whole_list_of_conditions,
    "§4.1, B-39: what we tell comes after what the user set, in every container but one": ours_comes_after_the_users,
    "§5.2: the order in which roles are written means nothing, and the one that decides is first":
        the_order_of_the_map_means_nothing,
    "§5.3, B-45: who ends without a code is started again under ExitCode": an_end_without_a_code_is_not_the_programs,
    "B-02: a deadline fires without news": deadline_without_news,
    "B-03, B-04: restarts by exit code are counted against the limit": restarts_are_counted,
    "B-06: a limit cleans up as the policy says": limits_respect_clean_up,
    "B-07: scaling down is no failure": scaling_down_is_no_failure,
    "B-08: a running pod that is deleted comes back": a_lost_pod_comes_back,
    "B-08: a running pod that is deleted fails a job that never restarts": a_lost_pod_fails_never,
    "B-09: a permanent exit code completes the job, and nothing is told to restart": a_permanent_code_completes,
    "B-10: OnFailure and Always restart in all kinds": failures_restart_in_all_kinds,
    "B-11, B-12: success wins over a failure of the same moment, and there is one end": success_wins,
    "B-21, B-49: the last condition is what people see": the_state_of_a_paused_job,
    "B-22: Created is written": created_is_written,
    "B-25: a pause is told once": a_pause_is_told_once,
    "B-40: the template's restart policy is overruled, and that is told": the_template_is_overruled,
    "B-41: a pod that is removed after its success is not run again": a_removed_success_stays_one,
    "B-43: a job that says so ends although sidecars run on": sidecars_hold_up_nothing,
    "B-44: failures are told as Normal": failures_are_told_as_normal,
    "B-47: what runs at the end stays by default": running_pods_stay_by_default,
    "B-48: that nobody schedules a pod is told by an event, not by a condition": nobody_says_a_job_waits_but_its_pods,
    "B-50: a failed job counts what still runs": a_failed_job_counts_what_still_runs,
    "B-51: one service for each pod": a_service_for_each_pod,
    "B-63: pods on the network of their host have ports of their own, if asked": pods_on_hosts_have_ports_of_their_own,
    "B-66: pods of the run before mean nothing": pods_of_the_run_before_mean_nothing,
    "B-67: last words survive": last_words_survive,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())
def test_rule(rule: Rule, kind: str) -> None:
    rule(kind)


def test_b58_extra_workers_and_evaluators_do_not_hold_up_success() -> None:
    world = World(job_of("TFJob", roles={"Chief": (1, "Never"), "Evaluator": (1, "Never"), "Worker": (2, "Never")}))
    world.settle()
    world.run()
    world.succeed("*-chief-0")
    world.settle()

    assert ("Succeeded", "True") == world.conditions()[-1]


@pytest.mark.parametrize(("kind", "roles", "leading"), [
    pytest.param("TFJob", {"Chief": 1, "Worker": 2}, ["chief-0"], id="TFJob: the chief"),
    pytest.param("TFJob", {"PS": 1, "Worker": 2}, ["worker-0"], id="TFJob without one: worker 0"),
    pytest.param("PyTorchJob", {"Master": 1, "Worker": 2}, ["master-0"], id="PyTorchJob: the master"),
    pytest.param("PyTorchJob", {"Worker": 2}, ["worker-0"], id="PyTorchJob without one: worker 0"),
    pytest.param("XGBoostJob", {"Master": 1, "Worker": 2}, ["master-0"], id="XGBoostJob: the master"),
    pytest.param("MXJob", {"Scheduler": 1, "Server": 2, "Worker": 1}, ["server-0", "server-1"],
                 id="B-33: MXJob: every server"),
    pytest.param("PaddleJob", {"Master": 2, "Worker": 1}, ["master-0", "master-1"], id="PaddleJob: every master"),
    pytest.param("PaddleJob", {"Worker": 2}, ["worker-0"], id="B-34: PaddleJob without one: worker 0"),
    pytest.param("JAXJob", {"Worker": 2}, ["worker-0"], id="JAXJob: worker 0"),
])
def test_whose_logs_people_are_shown(kind: str, roles: dict[str, int], leading: list[str]) -> None:
    world = World(job_of(kind, roles={role: (count, "Never") for role, count in roles.items()}))
    world.settle()
    found = [name for name, pod in world.pods.items() if "training.kubeflow.org/job-role" in pod["metadata"]["labels"]]

    assert [f"mnist-{member}" for member in leading] == sorted(found)


NUMBERS = {f"B-{number:02}" for number in range(1, 68)} | {f"V{number}" for number in range(1, 17)}
SPECIFICATION = parity.KIT.parent / "spec" / "training-jobs.md"
MARKED = yaml.safe_load((Path(__file__).parent / "marked-sentences.yaml").read_text())
present = pytest.mark.skipif(not SPECIFICATION.exists(), reason=f"the specification is not in {SPECIFICATION}")


def test_every_rule_is_named_by_a_test() -> None:
    """In the name of a test, in that of a row, or in the list of intended differences."""
    paths = [path for suffix in ("py", "yaml") for path in Path(__file__).parents[1].rglob(f"*.{suffix}")]
    texts = "\n".join(path.read_text() for path in paths)
    named = {f"B-{one or other}" for one, other in re.findall(r"B-(\d\d)|test_b(\d\d)_", texts)}
    named |= {f"V{one or other}" for one, other in re.findall(r"\bV(\d+)\b|test_v(\d+)_", texts)}

    assert set() == NUMBERS - named


@present
def test_these_are_all_the_rules_with_a_number() -> None:
    numbered = re.findall(r"^\| (B-\d\d|V\d+) \|", SPECIFICATION.read_text(), re.MULTILINE)

    assert sorted(NUMBERS) == sorted(numbered)


@pytest.mark.parametrize(("section", "sentence"), [
    pytest.param(section, sentence, id=f"§{section}: {sentence['says']}")
    for section, sentences in MARKED.items() for sentence in sentences
])
def test_a_marked_sentence_is_checked(section: str, sentence: Object) -> None:
    assert {"says", "ours"} == sentence.keys(), section
    assert sentence["ours"]
    assert [] == [name for name in sentence["ours"] if not exists(name)]


@present
def test_every_marked_sentence_is_listed() -> None:
    """Those before the list of bugs, whose rules have numbers; the first two explain the marks."""
    text = SPECIFICATION.read_text().partition("\n## 0. ")[2].partition("\n## 11. ")[0]
    section, marked = "0", []
    for line in text.splitlines():
        heading = re.match(r"##+ (\d+(?:\.\d+)?)[. ]", line)
        section = heading[1] if heading else section
        marked += [section] * len(re.findall(r"\[(?:KEEP|BETTER)\]", line))

    assert marked == [section for section, sentences in MARKED.items() for _ in sentences]
