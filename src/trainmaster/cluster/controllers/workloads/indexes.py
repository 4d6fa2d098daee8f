"""Sets of completion indexes as an Indexed Job writes them down: `0-2,5`. Pure."""

from collections.abc import Iterable

from trainmaster.api.meta import Object, labels_of, metadata

INDEX = "batch.kubernetes.io/job-completion-index"


def read(text: str, below: int) -> frozenset[int]:
    """The indexes in a text that are smaller than `below`; parts that cannot be read are left out."""
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if first.isdecimal() and (last.isdecimal() or not dash):
            found.update(range(int(first), min(int(last if dash else first) + 1, below)))
    return frozenset(each for each in found if each < below)


def written(indexes: Iterable[int]) -> str:
    runs: list[list[int]] = []
    for each in sorted(indexes):
        if runs and runs[-1][1] == each - 1:
            runs[-1][1] = each
        else:
            runs.append([each, each])
    # Two neighbours are written apart from three on, as Kubernetes does.
    return ",".join(str(first) if first == last else f"{first},{last}" if last == first + 1 else f"{first}-{last}"
                    for first, last in runs)


def index_of(pod: Object) -> int | None:
    """The index that a pod works on."""
    text = (metadata(pod).get("annotations") or {}).get(INDEX) or labels_of(pod).get(INDEX) or ""
    return int(text) if text.isdecimal() else None
