"""Writes the reference of the manual from the code that it describes: commands, kinds, reasons, metrics, settings.

    python tools/reference.py          rewrites docs/reference; a test fails where somebody forgot

Everything in docs/reference is ours; no page there is written by people.
"""

import inspect
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import yaml
from tools.reasons import meanings

from trainmaster.api import groups
from trainmaster.api.kubeflow_v1 import KINDS, JobKind
from trainmaster.api.meta import Object
from trainmaster.api.schema import definitions
from trainmaster.cli.main import COMMANDS, cli
from trainmaster.cluster.apiserver import traffic
from trainmaster.operator import metrics
from trainmaster.operator.preview import preview
from trainmaster.sdk import errors
from trainmaster.sdk.client import AsyncClient, Client
from trainmaster.sdk.code import How
from trainmaster.sdk.jobs import Job

FOLDER = Path(__file__).parents[1] / "docs" / "reference"
MADE = "<!-- Written by tools/reference.py; change what it describes, then run `make docs`. -->\n\n"

SETTINGS = Path(__file__).with_name("settings.yaml")
GROUPS = Path(__file__).with_name("groups.yaml")


def pages() -> dict[str, str]:
    """All pages by their path below the folder."""
    made = {"commands.md": commands(), "reasons.md": reasons(), "metrics.md": metric_page(), "settings.md": settings()}
    for kind in KINDS:
        made[f"kinds/{kind.singular}.md"] = kind_page(kind)
    made["kinds/groups.md"] = group_page()
    made["python.md"] = python()
    made["README.md"] = index()
    return {path: MADE + text.rstrip() + "\n" for path, text in made.items()}


def index() -> str:
    kinds = ", ".join(f"[{kind.kind}](kinds/{kind.singular}.md)" for kind in KINDS)
    return f"""# Reference

| page | has |
|---|---|
| [commands](commands.md) | every command with its options and an example |
| {kinds} | every field of each kind of job, what its replicas are told, when it has succeeded |
| [PodGroup and Queue](kinds/groups.md) | their fields, in the words of each scheduler |
| [reasons](reasons.md) | every reason that a job, a pod or a group can have, and what to do |
| [metrics](metrics.md) | every metric of the operator and of the API server |
| [settings](settings.md) | variables, files, labels and annotations |
| [Python](python.md) | every verb of `Client` and `AsyncClient`, what they return and raise |
| [the operator](../operator.md) | its flags and rights |
"""


def commands() -> str:
    codes = "Exit codes of all: 0 done, 1 it failed, 2 bad input, 3 no cluster, 130 interrupted."
    which = ("`-n`, `--kubeconfig` and `--context` may stand before a command, too. Those that ask no cluster take "
             "them for the\nsake of scripts, and do nothing with them; so with `-o` where one thing is printed.")
    parts = ["# Commands", "", codes, "", which, ""]
    root = click.Context(cli, info_name="trainmaster")
    parts += [f"- [{name}](#trainmaster-{name}): {sentence}" for name, (_, sentence) in COMMANDS.items()]
    for name in COMMANDS:
        found = cli.get_command(root, name)
        assert found is not None
        parts += ["", *_command(found, click.Context(found, info_name=name, parent=root), f"trainmaster {name}")]
    return "\n".join(parts)


def _command(found: click.Command, ctx: click.Context, called: str) -> Iterator[str]:
    yield f"## {called}"
    yield ""
    yield _prose(found.help or "")
    yield ""
    yield f"```text\n{called} {' '.join(found.collect_usage_pieces(ctx))}\n```"
    example = (found.epilog or "").removeprefix("Example: ")
    if example:
        yield f"\nExample: `{example}`"
    rows = [_option(each, ctx) for each in found.get_params(ctx)
            if isinstance(each, click.Option) and "--help" not in each.opts and not each.hidden]
    if rows:
        yield "\n| option | meaning |\n|---|---|"
        yield from rows
    if isinstance(found, click.Group):
        for name in found.list_commands(ctx):
            inner = found.get_command(ctx, name)
            assert inner is not None
            yield ""
            below = click.Context(inner, info_name=name, parent=ctx)
            yield "\n".join(_command(inner, below, f"{called} {name}")).replace("## ", "### ", 1)


def _option(option: click.Option, ctx: click.Context) -> str:
    record = option.get_help_record(ctx)
    names, meaning = record or ("", "")
    return f"| `{_cell(names)}` | {_cell(meaning)} |"


def _prose(text: str) -> str:
    """Help as Markdown: what must keep its lines is a block of code."""
    parts = []
    for paragraph in text.split("\n\n"):
        if paragraph.startswith("\b"):
            parts.append("```text\n" + paragraph.removeprefix("\b").strip("\n") + "\n```")
        else:
            parts.append(" ".join(paragraph.split()))
    return "\n\n".join(parts)


def reasons() -> str:
    rows = [f"| `{name.replace('{}', '…')}` | {each.on} | {_cell(each.means)} | {_cell(each.do)} |"
            for name, each in sorted(meanings().items(), key=lambda pair: pair[0].replace("{}", "~"))]
    about = ("The one word beside a condition, an event or a waiting container. `…` stands for the kind, as in "
             "`TFJobRunning`, or for what was made, as in `SuccessfulCreatePod`. `trainmaster describe JOB` and "
             "`trainmaster events JOB` show them; `trainmaster explain JOB` says them in sentences.")
    return "\n".join(["# Reasons", "", about, "", "| reason | of | means | what to do |", "|---|---|---|---|", *rows])


def metric_page() -> str:
    rows = [f"| `{name}` | {sort.__name__.lower()} | {', '.join(f'`{label}`' for label in labels)} | {meaning} |"
            for name, sort, labels, meaning in metrics.TABLE]
    head = ["| metric | type | labels | counts |", "|---|---|---|---|"]
    about = "At `/metrics` of `--metrics-bind-address` (see [the operator](../operator.md))."
    return "\n".join(["# Metrics", "", "## The operator", "", about, "", *head, *rows, "", "## The API server", "",
                      "Of the embedded cluster, at `/metrics`: `kubectl get --raw /metrics`.", "", *head,
                      *_server_metrics()])


def _server_metrics() -> Iterator[str]:
    """As the server itself describes them."""
    said = traffic.text(traffic.Traffic(), watches=0, revision=0, oldest=0)
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", said, re.MULTILINE))
    for name, meaning in re.findall(r"^# HELP (\S+) (.*)$", said, re.MULTILINE):
        labels = (*traffic.LABELS, "code") if name == "apiserver_request_total" else ()
        yield f"| `{name}` | {types[name]} | {', '.join(f'`{label}`' for label in labels)} | {meaning} |"


def settings() -> str:
    written = yaml.safe_load(SETTINGS.read_text())
    parts = ["# Settings", "", "## Variables", "", "| variable | meaning |", "|---|---|"]
    parts += [f"| `{name}` | {meaning} |" for name, meaning in written["variables"].items()]
    parts += ["", "## Files of the home", "", "| file | holds |", "|---|---|"]
    parts += [f"| `{name}` | {meaning} |" for name, meaning in written["files"].items()]
    parts += ["", "## Labels and annotations", "", "| name | is | means |", "|---|---|---|"]
    parts += [f"| `{name}` | {each['is']} | {each['means']} |" for name, each in written["names"].items()]
    return "\n".join(parts)


def python() -> str:
    """The SDK. What is written about `AsyncClient` holds for `Client`, whose verbs are the same without `await`."""
    about = ("`from trainmaster import Client, AsyncClient`. Both have these verbs; of `AsyncClient` they are awaited. "
             "How to use them: [use it from Python](../how-to/python.md).")
    parts = ["# Python", "", about, "", "## Verbs"]
    for name, verb in inspect.getmembers(Client, inspect.isfunction):
        if not name.startswith("_"):
            about = inspect.getdoc(getattr(AsyncClient, name)) or ""
            given = str(inspect.signature(verb)).replace("(self, ", "(").replace("(self)", "()")
            given = re.sub(r"(: |-> |\*\*\w+: )'([^']*)'", r"\1\2", given)
            given = re.sub(r"trainmaster\.(?:\w+\.)+|pathlib\.|collections\.abc\.|typing\.|builtins\.", "", given)
            parts += ["", f"### {name}", "", f"```text\n{name}{given}\n```", "", about]
    parts += ["", "## How code runs", "", "What `submit` takes besides a script, a folder of code or a function:", "",
              "| argument | type | is |", "|---|---|---|"]
    parts += [f"| `{name}` | `{_cell(kind)}` | {_cell(meaning)} |" for name, kind, meaning in
              re.findall(r"^    (\w+): (.+?) +# (.+)$", inspect.getsource(How), re.MULTILINE)]
    parts += ["", "## A job", "", "| attribute | is |", "|---|---|"]
    for name, found in inspect.getmembers(Job, lambda each: isinstance(each, property) or inspect.isfunction(each)):
        if not name.startswith("_"):
            call = "" if isinstance(found, property) else "()"
            parts.append(f"| `{name}{call}` | {_cell(inspect.getdoc(found) or '')} |")
    parts += ["| `object` | the object as the cluster had it |", "", "## What is raised", "", "| exception | when |",
              "|---|---|"]
    parts += [f"| `{name}` | {_cell(inspect.getdoc(each) or '')} |"
              for name, each in inspect.getmembers(errors, inspect.isclass) if issubclass(each, errors.SdkError)]
    return "\n".join(parts)


def kind_page(kind: JobKind) -> str:
    definition = next(each for each in definitions() if each["spec"]["names"]["kind"] == kind.kind)
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    job = example(kind)
    deciding = ", else ".join(kind.deciding)
    facts = [
        ("apiVersion, kind", f"`{kind.resource.api_version}`, `{kind.kind}`"),
        ("roles", ", ".join(f"`{role}`" for role in kind.roles)),
        ("must have", ", ".join([*(f"`{role}`" for role in kind.needed), *(f"`{each}`" for each in kind.required)])
         or "at least one role"),
        ("exactly one replica", ", ".join(f"`{role}`" for role in kind.single) or "of none"),
        ("the container that trains is called", f"`{kind.container}`"),
        ("port", f"`{kind.port_name}`, {kind.port}"),
        ("restartPolicy, if none is given", f"`{kind.restart.value}`"),
        ("it has succeeded when it has", f"`{deciding}`"),
        ("`kubectl scale` changes", f"`{kind.scaled}`" if kind.scaled else "nothing; use `trainmaster scale`"),
    ]
    parts = [f"# {kind.kind}", "", (kind.spec.__doc__ or "").strip(), "", "| | |", "|---|---|",
             *(f"| {name} | {value} |" for name, value in facts), "", "## A small one", "", "```yaml",
             yaml.safe_dump(job, sort_keys=False).rstrip(), "```", "", "## What its replicas are told", "",
             "Environment of the first worker of the job above:", "", "| variable | value |", "|---|---|",
             *(f"| `{name}` | {_cell(f'`{value}`' if value else '')} |" for name, value in _told(job, kind)),
             "", "## Fields of the spec", "", "| field | type | meaning |", "|---|---|---|",
             *_fields(schema["spec"], "spec"), "", "## Fields of the status", "", "| field | type | meaning |",
             "|---|---|---|", *_fields(schema["status"], "status")]
    return "\n".join(parts)


def group_page() -> str:
    """PodGroup and Queue in every dialect. Their definitions have no words, so those stand in groups.yaml."""
    meanings_ = yaml.safe_load(GROUPS.read_text())
    about = ("What a gang is ([whole trains or none](../../concepts/gangs.md)) and where it waits "
             "([queues](../../concepts/queues.md)), in the words of each scheduler. The operator writes PodGroups "
             "itself; one that is there under the name of the job is taken as it is.")
    parts = ["# PodGroup and Queue", "", about, ""]
    for definition in groups.definitions():
        names, version = definition["spec"]["names"], definition["spec"]["versions"][0]
        schema = version["schema"]["openAPIV3Schema"]
        rows = [row for row in _fields(schema, "") if "`spec." in row or (
            "spec" not in schema["properties"] and not re.search("`(apiVersion|kind|metadata)`", row))]
        parts += [f"## {names['kind']} of {definition['spec']['group']}/{version['name']}", "",
                  "| field | type | meaning |", "|---|---|---|",
                  *(f"{row.rpartition('|  |')[0]}| {meanings_[row.split('`')[1]]} |" for row in rows), ""]
    return "\n".join(parts)


def example(kind: JobKind) -> Object:
    """The smallest job with two workers, which print what they are told."""
    def role(replicas: int) -> Object:
        program = "import os; print(*sorted(os.environ.items()), sep='\\n')"
        container = {"name": kind.container, "image": "python:3.11", "command": ["python", "-c", program]}
        return {"replicas": replicas, "template": {"spec": {"containers": [container]}}}

    roles = {name: role(1) for name in (*kind.needed, *kind.deciding[:1]) if name != "Worker"}
    more: Object = {}
    if "jobMode" in kind.required:
        more, roles["Server"] = {"jobMode": "MXTrain"}, role(1)
    roles["Worker"] = role(2)
    return {"apiVersion": kind.resource.api_version, "kind": kind.kind, "metadata": {"name": example_name(kind)},
            "spec": {**more, kind.replica_field: roles}}


def example_name(kind: JobKind) -> str:
    """Each its own, so that all can be tried in one namespace."""
    return kind.singular.removesuffix("job")


def _told(job: Object, kind: JobKind) -> Iterator[tuple[str, str]]:
    placed = {**job, "metadata": {**job["metadata"], "namespace": "default", "uid": "0"}}
    pods = [each for each in preview(placed, datetime(2026, 1, 1, tzinfo=UTC)) if each["kind"] == "Pod"]
    worker = next(each for each in pods if each["metadata"]["name"] == f"{example_name(kind)}-worker-0")
    container = next(each for each in worker["spec"]["containers"] if each["name"] == kind.container)
    for each in container.get("env") or ():
        yield each["name"], str(each.get("value", ""))


def _fields(schema: Any, path: str) -> Iterator[str]:
    for name, inner in (schema.get("properties") or {}).items():
        here = f"{path}.{name}" if path else name
        yield f"| `{here}` | {_type(inner)} | {_cell(inner.get('description', ''))} |"
        if name == "template":
            continue      # a pod template, as Kubernetes has it
        yield from _fields(inner, here)
        if isinstance(inner.get("additionalProperties"), dict):
            yield from _fields(inner["additionalProperties"], f"{here}.NAME")
        if isinstance(inner.get("items"), dict):
            yield from _fields(inner["items"], f"{here}[]")


def _type(schema: Any) -> str:
    found = str(schema.get("type", "any"))
    if found == "array":
        return f"list of {_type(schema.get('items') or {})}"
    if found == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"map to {_type(schema['additionalProperties'])}"
    return f"{found} ({schema['format']})" if schema.get("format") and found == "string" else found


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def write() -> None:
    for path, text in pages().items():
        target = FOLDER / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    for stale in FOLDER.rglob("*.md"):
        if str(stale.relative_to(FOLDER)) not in pages():
            stale.unlink()


if __name__ == "__main__":
    write()
    sys.exit(0)
