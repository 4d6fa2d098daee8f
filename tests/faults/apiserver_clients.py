"""Clients that ask for things on few keys and write down when they asked and what they heard."""

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import orjson
from tests.faults.apiserver_history import NOT_ANSWERED, Listed, Operation

from trainmaster.api.meta import Object
from trainmaster.kube.errors import Unreachable
from trainmaster.kube.transport import Request, Response, Transport

MAPS = "/api/v1/namespaces/default/configmaps"
CLIENTS = 8
KEYS = ("a", "b", "c")
CERTAIN = {200, 201, 404, 409}      # whatever else is answered may have happened


@dataclass
class History:
    """Everything that was asked and heard, across the lives of a server."""

    operations: list[Operation] = field(default_factory=list)
    lists: list[Listed] = field(default_factory=list)
    _life: list[Operation] = field(default_factory=list)
    _values: int = 0

    def heard(self, operation: Operation) -> None:
        self._life.append(operation)

    def died(self, moment: int) -> None:
        """The server is gone since this moment: what it has not answered, it will not do any more."""
        for each in self._life:
            if each.code != NOT_ANSWERED:
                self.operations.append(each)
            elif each.began < moment and each.verb != "get":
                self.operations.append(replace(each, ended=moment))
        self._life.clear()

    def next_value(self) -> str:
        self._values += 1
        return f"v{self._values}"

    @property
    def acknowledged(self) -> Sequence[Operation]:
        return [each for each in self.operations if each.verb != "get" and each.code in {200, 201}]


class Client:
    """One of those who write. It remembers what it last saw, so that its updates are sometimes late."""

    def __init__(self, number: int, history: History, chance: random.Random, keys: Sequence[str] = KEYS) -> None:
        self._number = number
        self._history = history
        self._chance = chance
        self._keys = keys
        self._seen: dict[str, int] = {}

    async def work(self, transport: Transport, times: int) -> None:
        """Ask so many times, or until nobody answers."""
        for _ in range(times):
            try:
                await self._once(transport)
            except Unreachable:
                return

    async def _once(self, transport: Transport) -> None:
        key = self._chance.choice(self._keys)
        match self._chance.choices(("create", "get", "update", "delete", "list"), (25, 20, 40, 10, 5))[0]:
            case "create":
                request = Request("POST", MAPS, (), JSON, body(key, self._fresh(), 0))
                await self._write(transport, "create", key, request)
            case "update":
                expected = self._seen.get(key, 0) if self._chance.random() < 0.9 else 0
                sent = body(key, self._fresh(), expected)
                await self._write(transport, "update", key, Request("PUT", f"{MAPS}/{key}", (), JSON, sent), expected)
            case "delete":
                expected = self._seen.get(key, 0) if self._chance.random() < 0.5 else 0
                options = {"preconditions": {"resourceVersion": str(expected)}} if expected else {}
                request = Request("DELETE", f"{MAPS}/{key}", (), JSON, orjson.dumps(options))
                await self._write(transport, "delete", key, request, expected)
            case "get":
                await self._get(transport, key)
            case _:
                await self._list(transport)

    def _fresh(self) -> str:
        self._value = self._history.next_value()
        return self._value

    async def _write(self, transport: Transport, verb: str, key: str, request: Request, expected: int = 0) -> None:
        value = "" if verb == "delete" else self._value
        asked = Operation(self._number, verb, key, now(), 0, value=value, expected=expected)
        try:
            answer = await transport.send(request)
        except (Unreachable, asyncio.CancelledError):
            self._history.heard(asked)
            raise
        code = answer.status if answer.status in CERTAIN else NOT_ANSWERED
        revision = 0
        if code in {200, 201} and verb != "delete":
            revision = self._seen[key] = revision_of(orjson.loads(answer.body))
        self._history.heard(replace(asked, ended=now(), code=code, revision=revision))

    async def _get(self, transport: Transport, key: str) -> None:
        asked = Operation(self._number, "get", key, now(), 0)
        answer = await transport.send(Request("GET", f"{MAPS}/{key}"))
        if answer.status == 200:
            thing = orjson.loads(answer.body)
            self._seen[key] = revision_of(thing)
            asked = replace(asked, value=thing["data"]["value"], revision=self._seen[key])
        if answer.status in CERTAIN:
            self._history.heard(replace(asked, ended=now(), code=answer.status))

    async def _list(self, transport: Transport) -> None:
        began = now()
        answer: Response = await transport.send(Request("GET", MAPS))
        if answer.status == 200:
            found = orjson.loads(answer.body)
            items = {thing["metadata"]["name"]: (thing["data"]["value"], revision_of(thing))
                     for thing in found["items"] if thing["metadata"]["name"] in self._keys}
            self._history.lists.append(Listed(began, now(), revision_of(found), items))


JSON = {"content-type": "application/json"}


def body(key: str, value: str, expected: int) -> bytes:
    meta: Object = {"name": key, "labels": {"parity": "odd" if int(value[1:]) % 2 else "even"}}
    if expected:
        meta["resourceVersion"] = str(expected)
    return orjson.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"value": value}})


def revision_of(thing: Object) -> int:
    return int(thing["metadata"]["resourceVersion"])


def now() -> int:
    """Of one clock that never goes back, in nanoseconds."""
    return time.monotonic_ns()
