"""Requests under way, and those that were: a bound on the first, counters of the second for `/metrics`.

A server that takes every request it is offered answers none of them when there are too many; beyond the bound a client
is told to come back in a second. A watch or a log counts only until its stream is open: streams wait, they do not
work. The text of the metrics is written here; a library for it would bring more code than these few lines.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from trainmaster.cluster.apiserver import failures
from trainmaster.cluster.apiserver.health import NAMES as HEALTH

# As many as a real server takes by default, reads (400) and writes (200) together.
MOST = 600
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_ALWAYS = frozenset({*HEALTH, "metrics"})

# Verb, group, version, resource, subresource: bounded by the kinds that are served.
About: TypeAlias = tuple[str, str, str, str, str]
OTHER: About = ("other", "", "", "", "")
LABELS = ("verb", "group", "version", "resource", "subresource")


@dataclass(slots=True)
class Traffic:
    """What is going on. `under_way` is changed by `enter` and `leave`, which belong together."""

    most: int = MOST
    under_way: int = 0
    refused: int = 0
    done: dict[tuple[About, int], int] = field(default_factory=dict)

    def enter(self, path: str) -> None:
        """Raises Failure 429 when there are too many; who asks how the server is doing is always let in."""
        if self.under_way >= self.most and path.strip("/").partition("/")[0] not in _ALWAYS:
            self.refused += 1
            raise failures.too_many_requests()
        self.under_way += 1

    def leave(self) -> None:
        self.under_way -= 1

    @contextmanager
    def slot(self, path: str) -> Iterator[None]:
        """For what takes a place before the request is complete: a body that is being sent."""
        self.enter(path)
        try:
            yield
        finally:
            self.leave()

    def count(self, about: About, code: int) -> None:
        key = (about, code)
        self.done[key] = self.done.get(key, 0) + 1


def text(traffic: Traffic, *, watches: int, revision: int, oldest: int) -> str:
    """The metrics in the form that Prometheus reads; names as Kubernetes has them where it has them."""
    lines = list(_metric("apiserver_request_total", "counter", "Requests that were answered."))
    for (about, code), count in sorted(traffic.done.items()):
        said = {**dict(zip(LABELS, about, strict=True)), "code": str(code)}
        lines.append(f"apiserver_request_total{_labels(said)} {count}")
    plain = (
        ("apiserver_current_inflight_requests", "gauge", "Requests under way, without open streams.",
         traffic.under_way),
        ("trainmaster_apiserver_refused_total", "counter", "Requests refused because too many were under way.",
         traffic.refused),
        ("trainmaster_apiserver_watches", "gauge", "Watches that are open.", watches),
        ("trainmaster_store_revision", "counter", "The newest revision.", revision),
        ("trainmaster_store_oldest_revision", "counter", "The oldest revision that a watch can begin at.", oldest),
    )
    for name, kind, help_text, value in plain:
        lines += [*_metric(name, kind, help_text), f"{name} {value}"]
    return "\n".join(lines) + "\n"


def _metric(name: str, kind: str, help_text: str) -> Iterator[str]:
    yield f"# HELP {name} {help_text}"
    yield f"# TYPE {name} {kind}"


def _labels(pairs: Mapping[str, str]) -> str:
    escaped = (f'{name}="{value}"' for name, value in pairs.items())      # names of kinds need no escaping
    return "{" + ",".join(escaped) + "}"
