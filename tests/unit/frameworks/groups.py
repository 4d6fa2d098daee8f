"""Groups as frameworks see them, for tests: jobs called `m` in `ns1`, their environments and verdicts."""

from typing import Any

from tests.unit.engine.stories import job_of

from trainmaster.api.meta import Object
from trainmaster.frameworks.framework import ANYWHERE, Environment, Member, Outcome, Site, Tally, TrainingJob
from trainmaster.frameworks.registry import framework_of, read


def job(kind: str, roles: dict[str, int], site: Site = ANYWHERE, **spec: Any) -> TrainingJob:
    thing = job_of(kind, roles={role: (count, "Never") for role, count in roles.items()}, **spec)
    thing["metadata"] |= {"name": "m", "namespace": "ns1"}
    return read_job(thing, site)


def read_job(thing: Object, site: Site = ANYWHERE) -> TrainingJob:
    framework = framework_of(thing["kind"])
    assert framework is not None
    return read(thing, framework, site)


def member(made: TrainingJob, role: str, index: int) -> Member:
    found = made.group.role(role)
    assert found is not None
    return Member(found, index)


def told(made: TrainingJob, role: str, index: int = 0) -> Environment:
    return list(made.framework.environment(made.group, member(made, role, index)))


def pairs(made: TrainingJob, role: str, index: int = 0) -> str:
    """`A=1 B=2`, as the worked examples are written."""
    return " ".join(f"{entry['name']}={entry['value']}" for entry in told(made, role, index) if "value" in entry)


def judged(made: TrainingJob, states: Object) -> Outcome:
    tallies = {role.name: Tally(role, **states.get(role.name, {})) for role in made.roles}
    return made.framework.outcome(made.group, tallies)


def words(made: TrainingJob, states: Object) -> tuple[str, str] | None:
    """The verdict and its message."""
    found = judged(made, states)
    return None if found is None else (type(found).__name__, found.message)
