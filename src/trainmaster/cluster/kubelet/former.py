"""Logs of pods that are gone, kept for a while.

Who cleans up after a failed job removes the replicas that still run, and with them what they printed: the evidence. So
the logs of pods that belonged to something stay, under a record that says whose they were, until there are too many of
them or they are too old. The API does not show them as pods; they are asked for at the node (`formerpods`).
"""

import os
from collections.abc import Iterator
from pathlib import Path

from trainmaster.api.meta import Object, controller_of, metadata
from trainmaster.cluster.kubelet import logs, records
from trainmaster.cluster.kubelet.removal import remove
from trainmaster.runtime.clock import Clock

MOST_PODS, MOST_BYTES, LONGEST = 500, 256 << 20, 86_400.0


class Former:
    """What is kept in the folder of logs, the first to go first."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder, self._clock = folder, clock
        self._kept: dict[Path, tuple[float, int]] | None = None       # when it went, and its size

    def keep(self, pod: Object, place: Path) -> None:
        """The pod is gone: keep its logs if they may be asked for, else remove them. Blocks."""
        attempts = sorted((folder for folder in place.glob("*/*") if folder.name.isdecimal()), key=_number)
        lives = {folder.parent.name: _number(folder) for folder in attempts if logs.numbers(folder)}
        if controller_of(pod) is None or not lives:
            remove(place)
            return
        now = self._clock.now().timestamp()
        records.write(str(place), records.FORMER, {"metadata": whose(pod), "containers": lives, "gone": now})
        self._all()[place] = (now, _size(place))
        self._bound(now)

    def records(self, namespace: str) -> Iterator[tuple[Path, Object]]:
        """The places of a namespace, and whose they were."""
        for place in list(self._all()):
            record = records.read(str(place), records.FORMER)
            if record is not None and record["metadata"]["namespace"] == namespace:
                yield place, record

    def _all(self) -> dict[Path, tuple[float, int]]:
        if self._kept is None:
            found = [(float(record["gone"]), place) for place in self._folder.iterdir()
                     if (record := records.read(str(place), records.FORMER))]
            self._kept = {place: (gone, _size(place)) for gone, place in sorted(found)}
        return self._kept

    def _bound(self, now: float) -> None:
        kept = self._all()
        total = sum(size for _, size in kept.values())
        while kept:
            place, (gone, size) = next(iter(kept.items()))
            if len(kept) <= MOST_PODS and total <= MOST_BYTES and now - gone <= LONGEST:
                return
            remove(place)
            del kept[place]
            total -= size


def whose(pod: Object) -> Object:
    """The metadata that tell later whose the things were that a pod left."""
    return {name: value for name, value in metadata(pod).items()
            if name in ("namespace", "name", "uid", "labels", "ownerReferences")}


def _number(folder: Path) -> int:
    return int(folder.name)


def _size(place: Path) -> int:
    return sum(Path(here, name).stat().st_size for here, _, names in os.walk(place) for name in names)
