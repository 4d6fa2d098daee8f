"""Which scheduler is spoken to how."""

import pytest

from trainmaster.gang.dialects import KUBE_BATCH, SCHEDULER_PLUGINS, T9K, VOLCANO, Dialect, dialect, is_let_in


@pytest.mark.parametrize(("name", "resource", "scheduler"), [
    pytest.param("volcano", VOLCANO.resource, "volcano", id="volcano"),
    pytest.param("Volcano", VOLCANO.resource, "volcano", id="in any case"),
    pytest.param("kube-batch", KUBE_BATCH.resource, "kube-batch", id="kube-batch, which upstream takes and ignores"),
    pytest.param("t9k-scheduler", T9K.resource, "t9k-scheduler", id="t9k"),
    pytest.param("scheduler-plugins-scheduler", SCHEDULER_PLUGINS.resource, "scheduler-plugins-scheduler",
                 id="scheduler-plugins under its usual name"),
    pytest.param("my-profile", SCHEDULER_PLUGINS.resource, "my-profile", id="and under any other"),
])
def test_who_is_meant(name: str, resource: object, scheduler: str) -> None:
    spoken = dialect(name)

    assert spoken is not None
    assert (resource, scheduler) == (spoken.resource, spoken.scheduler)


@pytest.mark.parametrize("name", ["", "none", "None"])
def test_nobody_is_meant(name: str) -> None:
    assert dialect(name) is None


@pytest.mark.parametrize(("phase", "let_in"), [
    pytest.param(None, False, id="no group yet"),
    pytest.param("", False, id="nobody has looked at it"),
    pytest.param("Pending", False, id="waiting"),
    pytest.param("Inqueue", True, id="let in"),
    pytest.param("Running", True, id="running"),
    pytest.param("Unknown", True, id="partly running"),
    pytest.param("Completed", True, id="done"),
])
def test_when_volcano_has_let_a_group_in(phase: str | None, let_in: bool) -> None:
    assert let_in == is_let_in(VOLCANO, None if phase is None else {"status": {"phase": phase}})


@pytest.mark.parametrize("spoken", [KUBE_BATCH, T9K, SCHEDULER_PLUGINS], ids=lambda spoken: spoken.scheduler)
def test_the_others_hold_the_pods_themselves(spoken: Dialect) -> None:
    assert is_let_in(spoken, None)
