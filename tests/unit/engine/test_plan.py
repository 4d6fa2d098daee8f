"""The order of the policies, and what is true whatever happens."""

from copy import deepcopy

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.engine.stories import Deed, jobs, sites, stories, tfjob
from tests.unit.engine.world import World

from trainmaster.api.core import AUTOSCALERS
from trainmaster.api.groups import KUBE_BATCH_GROUPS
from trainmaster.api.meta import Object
from trainmaster.api.policy import JobStatus
from trainmaster.engine.actions import CreatePod, DeletePod, DeleteService
from trainmaster.engine.memory import recall
from trainmaster.frameworks.framework import Site


@given(jobs(), stories, st.booleans(), sites)
@settings(max_examples=200, deadline=None)
def test_whatever_happens(thing: Object, story: list[Deed], hold: bool, site: Site) -> None:
    """After every deed, with pods that go at once or stay for a while, with and without a gang scheduler."""
    world, before = World(thing, hold=hold, site=site), World(thing).status
    for deed in [Deed("wait", value=1), *story]:
        deed.happen(world)
        there_is_one_pod_for_each_index_at_most(world)
        world.settle()
        if world.gone:
            return
        doing_the_plan_left_nothing_to_do(world)
        a_terminal_condition_never_changes(before, world.status)
        restarts_are_only_ever_added_to(before, world.status)
        counts_equal_a_recount(world)
        before = world.status


def there_is_one_pod_for_each_index_at_most(world: World) -> None:
    """A pod is made only where none is, not even one that is on its way out."""
    made = [action.manifest["metadata"]["name"] for action in world.plan().actions if isinstance(action, CreatePod)]
    assert len(made) == len(set(made))
    assert not set(made) & set(world.pods)


def doing_the_plan_left_nothing_to_do(world: World) -> None:
    todo = world.plan()
    assert ((), world.status) == (todo.actions, todo.status)
    assert [] == [event for event in todo.events if not event.about]
    assert todo.look_again_at is None or todo.look_again_at > world.now


def a_terminal_condition_never_changes(before: JobStatus, after: JobStatus) -> None:
    ended = [found for found in before.conditions if found.type in ("Succeeded", "Failed")]
    now = [found for found in after.conditions if found.type in ("Succeeded", "Failed")]
    assert len(now) <= 1
    assert not ended or (ended, before.completion_time) == (now, after.completion_time)


def restarts_are_only_ever_added_to(before: JobStatus, after: JobStatus) -> None:
    for member, known in recall(before).replicas.items():
        assert recall(after).replicas[member].restarts >= known.restarts


def counts_equal_a_recount(world: World) -> None:
    if world.status.finished or world.job.run_policy.suspend or world.status.start_time is None:
        return
    left = recall(world.status).leaving
    for role in world.job.roles:
        mine = [pod for pod in world.seen.pods.values()
                if pod.role == role.word and pod.index < role.replicas and pod.uid not in left]
        count = world.status.replica_statuses[role.name]
        assert count.active == sum(pod.phase == "Running" and not pod.deleting for pod in mine)
        assert count.active + count.succeeded + count.failed <= role.replicas


@given(jobs(), stories, st.booleans(), sites)
@settings(max_examples=60, deadline=None)
def test_one_look_is_enough_unless_pods_have_to_go_first(
    thing: Object, story: list[Deed], hold: bool, site: Site
) -> None:
    """The second look after a change does something only if the first one deleted something."""
    world = World(thing, hold=hold, site=site)
    for deed in [Deed("wait", value=1), *story]:
        deed.happen(world)
        todo = world.plan()
        deleted = any(isinstance(action, DeletePod | DeleteService) for action in todo.actions)
        due = todo.look_again_at is not None and todo.look_again_at <= world.now
        world.look()
        if world.gone:
            return
        assert deleted or due or not world.look()
        world.settle()


@given(jobs(), stories)
@settings(max_examples=20, deadline=None)
def test_nothing_that_is_not_ours_is_touched(thing: Object, story: list[Deed]) -> None:
    """The children of a job of the same name that lived before, and of nobody."""
    world = World(thing, site=Site(gang_scheduler="kube-batch"))
    world.settle()
    theirs = {"metadata": {"name": "mnist", "uid": "theirs"}, "status": {"phase": "Running"}}
    world.beside = {(KUBE_BATCH_GROUPS, "mnist"): theirs, (AUTOSCALERS, "mnist"): theirs}
    strangers = {}
    for owner in ("job-0", ""):
        for name, pod in world.pods.items():
            stranger = deepcopy(pod)
            stranger["metadata"]["uid"] = f"stranger-{owner}-{name}"
            stranger["metadata"]["name"] = f"{owner or 'orphan'}-{name}"
            stranger["metadata"]["ownerReferences"] = [{"uid": owner, "controller": True}] if owner else []
            strangers[stranger["metadata"]["name"]] = stranger
    world.pods |= strangers

    for deed in story:
        if not world.gone and deed.verb != "lose beside" and deed.verb != "phase":
            # Only what people and nodes do to our own pods, or every stranger would change as well.
            deed.happen(world)
            world.settle()

    touched = {write.split(" ")[-1] for write in world.writes if write.startswith("delete pod")}
    assert not touched & set(strangers)
    assert world.gone or all(found is theirs for found in world.beside.values())


def test_the_same_inputs_give_the_same_plan() -> None:
    world = World(tfjob(roles={"Worker": (3, "ExitCode")}))
    world.settle()
    world.fail("*-1", code=137)

    assert world.plan() == world.plan()


def test_a_job_that_is_being_deleted_is_left_to_the_garbage_collector() -> None:
    thing = tfjob()
    thing["metadata"]["deletionTimestamp"] = "2030-01-01T12:00:00Z"

    todo = World(thing).plan()

    assert ((), World(thing).status) == (todo.actions, todo.status)


def test_a_job_of_another_manager_is_not_touched() -> None:
    todo = World(tfjob(policy={"managedBy": "kueue.x-k8s.io/multikueue"})).plan()

    assert ((), World(tfjob()).status) == (todo.actions, todo.status)


def test_a_job_that_names_us_as_its_manager_is_ours() -> None:
    assert World(tfjob(policy={"managedBy": "kubeflow.org/training-operator"})).plan().actions


def test_a_job_without_roles_stays_as_it_is() -> None:
    todo = World(tfjob(roles={})).plan()

    assert ((), World(tfjob()).status) == (todo.actions, todo.status)
