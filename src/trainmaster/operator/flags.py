"""The operator's flags, as data: those that people have in their manifests for kubeflow's operators, and a few of ours.

A cluster that swaps operators keeps its Deployment, so every flag of training-operator 1.9 is known under its name, and
so are those of its forerunners. What a flag once did and no longer has to do is accepted and said, never refused; what
nobody ever knew is refused. The table is the command line, the page in the manual and the test of both.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

TRUE, FALSE = ("1", "t", "true"), ("0", "f", "false")   # what Go's flags take, in any case
LEASE: Final = "1ca428e5.training-operator.kubeflow.org"


class BadFlag(ValueError):
    """A value that a flag cannot have; the message is for the person who wrote it."""


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag. `default` is what it is if nobody says anything; `upstream` is set where kubeflow's is another."""

    name: str
    default: str | int | float | bool
    meaning: str
    upstream: str | None = None
    stands_for: str = ""      # an old name of that flag
    ignored: str = ""         # accepted, and why it does nothing
    many: bool = False        # may be given more than once
    values: tuple[str, ...] = ()


FLAGS: Final = (
    Flag("kubeconfig", "", "Which cluster. Without it KUBECONFIG, else the account of the pod we run in."),
    Flag("context", "", "Context of the kubeconfig."),
    Flag("namespace", "", "Work only in this namespace; everywhere if empty. Environment: KUBEFLOW_NAMESPACE."),
    Flag("enable-scheme", "", "Run only this kind, such as TFJob, in any case; give it once per kind. All if absent.",
         many=True),
    Flag("gang-scheduler-name", "", "Who starts the pods of a job together: volcano, kube-batch, t9k-scheduler, or the "
         "name of a scheduler with the coscheduling plugin. Nobody if empty or none."),
    Flag("controller-threads", 8, "Jobs of one kind that are worked on at the same time.", upstream="1"),
    Flag("kube-api-qps", 200.0, "Requests to the API server per second; 0 does not limit.", upstream="20"),
    Flag("kube-api-burst", 400, "Requests that may be sent at once after a quiet time.", upstream="30"),
    Flag("metrics-bind-address", ":8080", "Where /metrics is; 0 for nowhere. Outside of a pod 127.0.0.1:8080."),
    Flag("health-probe-bind-address", ":8081",
         "Where /healthz and /readyz are; 0 for nowhere. Outside of a pod 127.0.0.1:8081."),
    Flag("leader-elect", False, "Work only while holding the lease, so that a second operator can stand by."),
    Flag("leader-election-id", LEASE, "Name of the lease, in the operator's own namespace."),
    Flag("pytorch-init-container-image", "alpine:3.10", "Image of the init container that waits for a master's name."),
    Flag("pytorch-init-container-template-file", "/etc/config/initContainer.yaml",
         "A list of init containers to use instead; not needed to be there."),
    Flag("pytorch-init-container-max-tries", 100, "How often it looks for the name, every two seconds."),
    Flag("mpi-kubectl-delivery-image", "kubeflow/kubectl-delivery:latest", "Of MPIJobs.",
         ignored="MPIJobs are not run by this operator yet"),
    Flag("webhook-server-port", 9443, "Port of the validating webhook; 0 for none. Outside of a pod, none if "
         "absent, and on 127.0.0.1 alone."),
    Flag("webhook-service-name", "training-operator", "Service through which the API server reaches the webhook."),
    Flag("webhook-secret-name", "training-operator-webhook-cert", "Secret with the certificate of the webhook."),
    Flag("cert-dir", "", "Folder with tls.crt and tls.key for the webhook, instead of the secret."),
    Flag("json-logs", False, "Logs as JSON, one object per line."),
    Flag("zap-encoder", "", "Form of the logs.", values=("json", "console")),
    Flag("zap-log-level", "info", "debug, info, error, or a number: 1 and more is debug."),
    Flag("zap-devel", True, "false means JSON logs unless --zap-encoder says otherwise."),
    Flag("zap-stacktrace-level", "", "Of the logs.", ignored="a traceback is written with every error that is a bug"),
    Flag("zap-time-encoding", "", "Of the logs.", ignored="times are RFC 3339 in UTC"),
    # training-operator up to 1.7
    Flag("enable-gang-scheduling", False, "Up to 1.5: true means --gang-scheduler-name=volcano unless it is given."),
    Flag("monitoring-port", 9443, "Up to 1.7.", stands_for="webhook-server-port"),
    # tf-operator and pytorch-operator
    Flag("master", "", "Address of the API server, instead of the one in the kubeconfig."),
    Flag("threadiness", 1, "tf-operator.", stands_for="controller-threads"),
    Flag("qps", 5.0, "tf-operator.", stands_for="kube-api-qps"),
    Flag("burst", 10, "tf-operator.", stands_for="kube-api-burst"),
    Flag("json-log-format", True, "tf-operator.", stands_for="json-logs"),
    Flag("init-container-image", "alpine:3.10", "pytorch-operator.", stands_for="pytorch-init-container-image"),
    Flag("resync-period", "", "tf-operator.", ignored="nothing is lost between two looks, so there is no resync"),
    Flag("resyc-period", "", "tf-operator, which spells it so.", ignored="as --resync-period"),
    Flag("enable-leader-election", False, "pytorch-operator.", stands_for="leader-elect"),
    Flag("metrics-addr", ":8080", "Up to 1.2.", stands_for="metrics-bind-address"),
)
BY_NAME: Final = {flag.name: flag for flag in FLAGS}
Value = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Given:
    """The flags as they were given: one value each, old names read as what they stand for."""

    values: Mapping[str, Value]
    kinds: tuple[str, ...] = ()
    said: frozenset[str] = frozenset()     # names that somebody wrote down, by the name they stand for
    notes: tuple[str, ...] = ()            # what to tell about flags that do nothing here

    def text(self, name: str) -> str:
        return str(self.values[name])

    def number(self, name: str) -> int:
        return int(self.values[name])

    def rate(self, name: str) -> float:
        return float(self.values[name])

    def truth(self, name: str) -> bool:
        return bool(self.values[name])


def read(words: Mapping[str, Iterable[str]], environment: Mapping[str, str]) -> Given:
    """What the words mean. The new name of a flag wins over an old one. Raises BadFlag."""
    values: dict[str, Value] = {flag.name: flag.default for flag in FLAGS if not flag.stands_for}
    values["kubeconfig"] = environment.get("KUBECONFIG", "")
    values["namespace"] = environment.get("KUBEFLOW_NAMESPACE", "")
    said: set[str] = set()
    notes: list[str] = []
    kinds: list[str] = []
    for flag in sorted(FLAGS, key=lambda flag: not flag.stands_for):    # old names first
        for word in words.get(flag.name, ()):
            if flag.many:
                kinds += [part for part in word.split(",") if part]
                continue
            place = flag.stands_for or flag.name
            values[place] = _value(flag, word)
            said.add(place)
            if flag.ignored:
                notes.append(f"--{flag.name} does nothing here: {flag.ignored}")
    return Given(values, tuple(kinds), frozenset(said), tuple(notes))


def gang_scheduler(given: Given) -> str:
    """Both styles: a name that is on or off by itself, and the switch of older releases, which meant Volcano."""
    name = given.text("gang-scheduler-name")
    if name.lower() == "none":
        return ""
    if "enable-gang-scheduling" in given.said:
        return (name or "volcano") if given.truth("enable-gang-scheduling") else ""
    return name


def kinds(given: Given, known: Iterable[str]) -> tuple[str, ...]:
    """The kinds to run, as they are spelt. Raises BadFlag for one that is none."""
    by_word = {kind.lower(): kind for kind in known}
    for word in given.kinds:
        if word.lower() not in by_word:
            raise BadFlag(f"scheme {word} is not supported yet; there are {', '.join(sorted(by_word.values()))}")
    return tuple(dict.fromkeys(by_word[word.lower()] for word in given.kinds))


def log_form(given: Given) -> tuple[str, bool]:
    """The level, and whether JSON."""
    level = given.text("zap-log-level").lower()
    if level.lstrip("-").isdecimal():
        level = "debug" if int(level) > 0 else "info"
    level = {"warn": "warning", "dpanic": "critical", "panic": "critical", "fatal": "critical"}.get(level, level)
    if level not in ("debug", "info", "warning", "error", "critical"):
        raise BadFlag(f"--zap-log-level {given.text('zap-log-level')}: write debug, info, error or a number")
    encoder = given.text("zap-encoder")
    if encoder:
        return level, encoder == "json"
    return level, given.truth("json-logs") or not given.truth("zap-devel")


def init_template(given: Given) -> str:
    """The init containers of the file, if there is one. Raises BadFlag if one was named that cannot be read."""
    path = Path(given.text("pytorch-init-container-template-file"))
    try:
        return path.read_text()
    except FileNotFoundError:
        if "pytorch-init-container-template-file" not in given.said:
            return ""
        raise BadFlag(f"--pytorch-init-container-template-file {path}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as problem:
        raise BadFlag(f"--pytorch-init-container-template-file {path}: {problem}") from problem


def _value(flag: Flag, word: str) -> Value:
    match flag.default:
        case bool():
            if word.lower() not in (*TRUE, *FALSE):
                raise BadFlag(f"--{flag.name} {word}: write true or false")
            return word.lower() in TRUE
        case int() | float() as number:
            try:
                value = type(number)(word)
            except ValueError:
                raise BadFlag(f"--{flag.name} {word}: write a number") from None
            if value < 0:
                raise BadFlag(f"--{flag.name} {word}: it cannot be less than 0")
            return value
    if flag.values and word not in flag.values:
        raise BadFlag(f"--{flag.name} {word}: write {' or '.join(flag.values)}")
    return word
