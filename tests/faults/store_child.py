"""A process whose only purpose is to be killed while it writes to a store.

Started once, it forks a child for every line it reads, because starting Python two thousand times takes longer than
the test. A child tells of every write that was acknowledged, at once and unbuffered. It either writes until it is
killed, or plays a short story with every part of a store's life in it and kills itself at a chosen step.

A step has the name of the innermost function of the store that is at work and what it does to which file, for instance
`forget: sync cluster.db-wal`; nobody keeps a list of them.
"""

import asyncio
import json
import os
import random
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.faults.disk import OK, Disk, Operation

from trainmaster.cluster.store import Stale, Store, Window

KEYS = [f"/core/{kind}/{namespace}/{name}" for kind in ("pods", "secrets") for namespace in "ab" for name in "xyz"]
BIG = "/core/secrets/c/big"  # so big that the file has to grow
KEYS.append(BIG)
WINDOW = Window(changes=40)
CLIENTS = 6  # at most so many writes are on their way
AT_WORK = {"commit", "forget", "migrate", "_hold", "tidy", "make_room", "release", "close", "_open", "load"}

Tell = Callable[[int, str, str, int], None]  # revision, key, verb, the revision it was decided on


@dataclass(frozen=True, slots=True)
class Death:
    """At the n-th time that the step comes up, before it or in the middle of it."""

    step: str
    occurrence: int
    torn: bool = False


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def acknowledged(revision: int, key: str, verb: str, expected: int) -> None:
    say("ack", revision, key, verb, expected)


def content(key: str, chance: random.Random) -> Callable[[int], bytes]:
    size = chance.choice([10, 100, 2000, 2000, 6000])
    return lambda revision: f"{key} {revision} ".encode().ljust(size, b".")


async def write(store: Store, chance: random.Random, times: int, tell: Tell) -> None:
    """One client. Several of them meet on the same keys."""
    for _ in range(times):
        key = chance.choice(KEYS[:-1])
        current = store.latest(key)
        try:
            if current is None:
                verb, record = "create", await store.create(key, content(key, chance))
            elif chance.random() < 0.3:
                verb, record = "delete", await store.delete(key, current.revision, content(key, chance))
            else:
                verb, record = "update", await store.update(key, content(key, chance), current.revision)
        except Stale:
            continue
        tell(record.revision, key, verb, current.revision if current else 0)
        if chance.random() < 0.05:
            await store.compact(store.revision - chance.randrange(12))


async def until_killed(path: Path, seed: int) -> None:
    store = Store.open(path, window=WINDOW)
    await asyncio.gather(
        *(write(store, random.Random(f"{seed}/{client}"), sys.maxsize, acknowledged) for client in range(CLIENTS))
    )


async def story(path: Path, seed: int, tell: Tell) -> None:
    """Make a file, write, compact, close; open it again, write, grow, close."""
    for life in range(2):
        store = Store.open(path, window=WINDOW)
        clients = (write(store, random.Random(f"{seed}/{life}/{client}"), 12, tell) for client in range(CLIENTS))
        await asyncio.gather(*clients)
        if life:
            big = await store.create(BIG, lambda revision: f"{BIG} {revision} ".encode().ljust(1 << 20))
            tell(big.revision, BIG, "create", 0)
        await store.compact(store.revision - 5)
        await store.close()


def with_steps(path: Path, death: Death | None) -> Counter[str]:
    """Count the steps from now on, and die at one of them."""
    steps: Counter[str] = Counter()

    def before(operation: Operation) -> int:
        step = f"{at_work()}: {operation.kind} {operation.file}"
        steps[step] += 1
        if death is not None and step == death.step and steps[step] == death.occurrence:
            if death.torn:
                with (path.parent / operation.file).open("r+b", buffering=0) as file:
                    file.seek(operation.offset)
                    file.write(operation.data[: len(operation.data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        return OK

    Disk(before).install()
    return steps


def at_work() -> str:
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code.co_name in AT_WORK and "cluster/store" in frame.f_code.co_filename:
            return frame.f_code.co_name
    return "other"


def child(order: dict[str, object]) -> None:
    path, seed = Path(str(order["path"])), int(str(order["seed"]))
    if not order.get("story"):
        asyncio.run(until_killed(path, seed))
    death = order.get("death")
    steps = with_steps(path, Death(**death) if isinstance(death, dict) else None)
    asyncio.run(story(path, seed, acknowledged))
    for step, count in steps.items():
        say("step", count, step)


def main() -> None:
    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                say("pid", os.getpid())
                child(order)
                code = 0
            except BaseException:  # noqa: BLE001 - the last thing it does is to say why
                traceback.print_exc()
            finally:
                os._exit(code)
        _, status = os.waitpid(pid, 0)
        say("end", os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
