"""What commands have in common towards the person: where words go, exit codes, errors as sentences, forms of output."""

import errno
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click

FAILED, BAD_INPUT, NO_CLUSTER, INTERRUPTED = 1, 2, 3, 130
FORMS = ("table", "wide", "json", "yaml", "name")
OBJECTS = ("json", "yaml", "name")      # for programs, the others are for people


class Told(click.ClickException):
    """An error that is a sentence already, with its exit code."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code  # type: ignore[misc]  # click reads it from the instance

    def show(self, file: object = None) -> None:  # noqa: ARG002  click's signature
        say(f"error: {self.message}")


def say(text: str) -> None:
    """To the person; results go to standard output by click.echo instead."""
    click.echo(text, err=True)


def guarded(command: Callable[[], None]) -> None:
    """Run a command; what nobody expected becomes one sentence, with the traceback only for `--debug`."""
    try:
        command()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:      # the reader, such as `head`, has what it wanted
        sys.stderr.close()
        sys.exit(0)
    except OSError as problem:
        say(f"error: {of_files(problem)}")
        sys.exit(NO_CLUSTER)
    except Exception as problem:  # noqa: BLE001  the last place that can turn a bug into a sentence
        say(f"error: {type(problem).__name__}: {problem}\nThis is a bug in Trainmaster. "
            "Run the command again with --debug to see where it happened.")
        sys.exit(FAILED)


def of_files(problem: OSError) -> str:
    """What is wrong with a file or the disk, and what to do; nearly always it is about the home of the cluster."""
    where = f"{problem.filename}: " if problem.filename else ""
    if problem.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{where}{problem.strerror}. Make room, or set TRAINMASTER_HOME to a folder on a disk that has some."
    return (f"{where}{problem.strerror or problem}. If this is about the home of the cluster, set "
            "TRAINMASTER_HOME to a folder of your own.")


@contextmanager
def told(server: str = "") -> Iterator[None]:
    """What can go wrong with a cluster and with jobs, as a sentence and an exit code."""
    from trainmaster.kube.errors import ApiError, Forbidden, NotFound, Unreachable
    from trainmaster.kube.kubeconfig import KubeconfigError
    from trainmaster.sdk import errors

    try:
        yield
    except errors.NoCluster as problem:
        raise Told(str(problem), NO_CLUSTER) from problem
    except errors.JobFailed as problem:
        raise Told("\n  ".join([str(problem), *problem.details]), FAILED) from problem
    except (errors.TimedOut, errors.JobGone) as problem:
        raise Told(str(problem), FAILED) from problem
    except (errors.SdkError, KubeconfigError) as problem:
        raise Told(str(problem), BAD_INPUT) from problem
    except Unreachable as problem:
        raise Told(f"The cluster does not answer: {problem}. Is it up, and is this the right one?", NO_CLUSTER
                   ) from problem
    except NotFound as problem:
        raise Told(f"{problem}.", BAD_INPUT) from problem
    except Forbidden as problem:
        raise Told(f"{server or 'The cluster'} does not allow it: {problem}", FAILED) from problem
    except ApiError as problem:
        raise Told(f"{server or 'The cluster'} refuses: {problem}", FAILED) from problem


def printed(value: Any, form: str) -> None:
    """JSON or YAML, for programs; of objects without the server's bookkeeping of who set which field, as kubectl."""
    if form == "json":
        import orjson

        click.echo(orjson.dumps(_plain(value), option=orjson.OPT_INDENT_2).decode())
        return
    documents([value])


def _plain(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    if value.get("kind") == "List" and isinstance(value.get("items"), list):
        return {**value, "items": [_plain(item) for item in value["items"]]}
    about = value.get("metadata")
    if not isinstance(about, Mapping) or "managedFields" not in about:
        return value
    return {**value, "metadata": {name: said for name, said in about.items() if name != "managedFields"}}


def documents(values: Sequence[Any]) -> None:
    """YAML, each on its own. What two parts have in common is written twice: people read it, not only programs."""
    import yaml

    base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    plain = type("Plain", (base,), {"ignore_aliases": lambda _self, _data: True})
    click.echo(yaml.dump_all(map(_plain, values), Dumper=plain, sort_keys=False, allow_unicode=True), nl=False)


def listed(things: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Several objects as one, as kubectl has it."""
    return {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": list(things)}


def called(resource: Any, name: str) -> str:
    """tfjob.kubeflow.org/mnist, pod/mnist-worker-0: what `-o name` prints, and commands take."""
    group = f".{resource.group}" if resource.group else ""
    return f"{resource.kind.lower()}{group}/{name}"


def outcome(things: Sequence[tuple[Any, Mapping[str, Any]]], form: str) -> None:
    """What is there at the end, with the resource of each: one object as it is, several as a list, or their names."""
    if form == "name":
        for resource, thing in things:
            click.echo(called(resource, thing["metadata"]["name"]))
    else:
        objects = [thing for _, thing in things]
        printed(objects[0] if len(objects) == 1 else listed(objects), form)


def reported(resource: Any, thing: Mapping[str, Any], what: str, form: str) -> None:
    """What became of an object: a line, its name alone, or the object itself."""
    name = called(resource, thing["metadata"]["name"])
    if form in ("json", "yaml"):
        printed(thing, form)
    else:
        click.echo(name if form == "name" else f"{name} {what}")
