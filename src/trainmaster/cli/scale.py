"""`trainmaster scale JOB`: more or fewer replicas."""

import click

from trainmaster.cli import cluster
from trainmaster.cli.output import BAD_INPUT, Told, reported, say


@click.command(epilog="Example: trainmaster scale mnist --replicas worker=4")
@cluster.job_argument
@click.option("--replicas", multiple=True, required=True, metavar="[ROLE=]N", help="How many, of which role.")
@cluster.output
@cluster.options
def command(asked: cluster.Asked, job: str, replicas: tuple[str, ...], form: str) -> None:
    """Change how many replicas a job has. One that is not elastic takes notice at its next start only."""
    wanted = parsed(replicas)
    with asked.client(changes=True) as client:
        found = client.scale(job, wanted)
        numbers = ", ".join(f"{role.name}={role.replicas}" for role in found.roles())
        reported(found.resource, found.object, f"scaled: {numbers}", form)
        if not found.elastic and found.state in ("Running", "Restarting"):
            say(f"note: {found.kind} {found.name} is not elastic: replicas that run were told how many they are, and "
                f"do not take notice. `trainmaster restart {found.name}` starts all of them with the new number.")


def parsed(replicas: tuple[str, ...]) -> int | dict[str, int]:
    """4, or worker=4 ps=2. Raises Told."""
    wanted: dict[str, int] = {}
    for text in replicas:
        role, equals, number = text.rpartition("=")
        if not number.isdigit() or (equals and not role):
            raise Told(f"--replicas {text}: write ROLE=NUMBER, such as worker=4.", BAD_INPUT)
        wanted[role] = int(number)
    if "" in wanted and len(wanted) > 1:
        raise Told("--replicas: name the role of each number, such as worker=4.", BAD_INPUT)
    return wanted.get("", wanted)
