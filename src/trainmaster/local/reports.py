"""Where jobs of the embedded cluster say how far they are, and how it gets onto the job.

A door of the API server's own, because pods reach that server anyway, with the certificate and the token that they
have: one that is bound to the pod, so that nobody can speak for another job. The body is Kubeflow Trainer's. What
arrives is gathered and written at a bounded rate, however often and from however many replicas it is said.
"""

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from trainmaster.api.core import PODS
from trainmaster.api.kubeflow_v1 import JobKind, kind_named
from trainmaster.api.membership import INDEX, JOB_ROLE, ROLE
from trainmaster.api.meta import Key, Object, labels_of, metadata, uid_of
from trainmaster.cluster.apiserver import failures
from trainmaster.cluster.apiserver.answers import refusal
from trainmaster.cluster.apiserver.auth import ACCOUNT_PREFIX, MASTERS, Identity
from trainmaster.kube.client import Client
from trainmaster.kube.errors import Conflict, KubeError, NotFound
from trainmaster.kube.transport import Request, Response
from trainmaster.progress import curves
from trainmaster.progress.curves import PRINTED, REPORTED, TENSORBOARD, Said
from trainmaster.progress.report import BadReport, Report, decoded
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.log import logger

log = logger("progress")

DOOR = "progress"                                  # the first part of the path
SOURCE = "x-trainmaster-source"                    # header: how the node knows what it says for a pod
WRITE_EVERY = 2.0                                  # seconds between two writes of one job
WRITES = 20.0                                      # a second, of all jobs together
MOST_PODS, MOST_REPORTS = 2_000, 32                # that wait to be written, and of each pod
LARGEST = 64 << 10
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
SERVER = "https://kubernetes.default.svc"
_POD_NAME, _POD_UID = "authentication.kubernetes.io/pod-name", "authentication.kubernetes.io/pod-uid"
_NODE = "system:node:"


def path(namespace: str, pod: str) -> str:
    return f"/{DOOR}/namespaces/{namespace}/pods/{pod}"


def announced(pod: Object, container: Object) -> dict[str, str]:
    """What a container of a training job is told, so that it can report; nothing where it has no token."""
    about = metadata(pod)
    mounts = {str(mount.get("mountPath")) for mount in container.get("volumeMounts") or ()}
    if ACCOUNT not in mounts or _kind_of(pod) is None:
        return {}
    return {
        "KUBEFLOW_TRAINER_SERVER_URL": SERVER + path(str(about.get("namespace")), str(about.get("name"))),
        "KUBEFLOW_TRAINER_SERVER_CA_CERT": f"{ACCOUNT}/ca.crt",
        "KUBEFLOW_TRAINER_SERVER_TOKEN": f"{ACCOUNT}/token",
    }


@dataclass(frozen=True, slots=True)
class _From:
    """Who spoke: a pod, or a node for one of its pods."""

    pod: Key
    uid: str = ""           # of the pod, if it speaks for itself
    node: str = ""


class Reports:
    """Takes reports in and writes them onto jobs."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._waiting: dict[_From, deque[tuple[Report, str]]] = {}
        self._arrived = asyncio.Event()

    async def answer(self, request: Request, who: Identity) -> Response:
        """One request at the door."""
        try:
            speaker = _speaker(request, who)
            report = decoded(request.body)
        except failures.Failure as failure:
            return refusal(failure)
        except BadReport as problem:
            return refusal(failures.bad_request(str(problem)))
        if speaker not in self._waiting and len(self._waiting) >= MOST_PODS:
            return refusal(failures.Failure(429, "TooManyRequests", "too many jobs report at once; say it again later",
                                            headers={"Retry-After": "5"}))
        said = request.headers.get(SOURCE, REPORTED) if speaker.node else REPORTED
        self._waiting.setdefault(speaker, deque(maxlen=MOST_REPORTS)).append(
            (report, said if said in (PRINTED, TENSORBOARD) else REPORTED))
        self._arrived.set()
        return Response(200, {"Content-Type": "application/json"}, orjson.dumps({"status": "Success"}))

    async def run(self) -> None:
        """Write until cancelled: the first at once, then as often as is bearable."""
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            waiting, self._waiting = self._waiting, {}
            jobs = await self._by_job(waiting)
            for (kind, key, uid), said in jobs.items():
                try:
                    await self._write(kind, key, uid, said)
                except KubeError as problem:
                    log.warning("progress could not be written", job=key, cause=problem)
            await self._clock.sleep(max(WRITE_EVERY, len(jobs) / WRITES))

    async def _by_job(
        self, waiting: Mapping[_From, deque[tuple[Report, str]]]
    ) -> dict[tuple[JobKind, Key, str], list[Said]]:
        found: dict[tuple[JobKind, Key, str], list[Said]] = {}
        moment = self._clock.now()
        for speaker, reports in waiting.items():
            try:
                pod = await self._client.get(PODS, speaker.pod.name, speaker.pod.namespace)
            except KubeError:
                continue                         # gone, and its job has other worries
            owned = _owner(pod)
            if owned is None or not _may_speak(speaker, pod):
                continue
            kind, owner = owned
            replica, leads = replica_name(pod), labels_of(pod).get(JOB_ROLE) == "master"
            found.setdefault((kind, Key(speaker.pod.namespace, owner["name"]), owner["uid"]), []).extend(
                Said(report, moment, replica, leads, source) for report, source in reports)
        return found

    async def _write(self, kind: JobKind, key: Key, uid: str, said: list[Said]) -> None:
        for _ in range(3):
            try:
                job = await self._client.get(kind.resource, key.name, key.namespace)
            except NotFound:
                return
            before = after = curves.of(job)
            for each in said:
                after = curves.added(after, each)
            if uid_of(job) != uid or after is None or after == before:
                return
            about = {"resourceVersion": metadata(job)["resourceVersion"],
                     "annotations": {curves.ANNOTATION: curves.written(after)}}
            try:
                await self._client.patch(kind.resource, key.name, key.namespace, {"metadata": about})
                return
            except Conflict:
                continue
            except NotFound:
                return


def replica_name(pod: Object) -> str:
    labels = labels_of(pod)
    return f"{labels.get(ROLE, '')}-{labels.get(INDEX, '')}".strip("-") or str(metadata(pod).get("name", ""))


def _owner(pod: Object) -> tuple[JobKind, Object] | None:
    for owner in metadata(pod).get("ownerReferences") or ():
        kind = kind_named(str(owner.get("kind", "")))
        if owner.get("controller") and kind is not None and owner.get("apiVersion") == kind.resource.api_version:
            return kind, owner
    return None


def _kind_of(pod: Object) -> JobKind | None:
    found = _owner(pod)
    return found[0] if found else None


def _speaker(request: Request, who: Identity) -> _From:
    """Raises Failure for a place that is none, and for those who speak for others."""
    parts = request.path.strip("/").split("/")
    if len(parts) != 5 or parts[1] != "namespaces" or parts[3] != "pods" or not all(parts):
        raise failures.unknown_resource()
    if request.method not in ("POST", "PUT", "PATCH"):
        raise failures.method_not_allowed()
    if len(request.body) > LARGEST:
        raise failures.too_large(LARGEST)
    key = Key(parts[2], parts[4])
    extra = dict(who.extra)
    if who.user.startswith(f"{ACCOUNT_PREFIX}{key.namespace}:") and extra.get(_POD_NAME) == (key.name,):
        return _From(key, uid=extra.get(_POD_UID, ("",))[0])
    if who.user.startswith(_NODE):
        return _From(key, node=who.user.removeprefix(_NODE))
    if MASTERS in who.groups:
        return _From(key)
    raise failures.Failure(403, "Forbidden", f"only pod {key} itself may say how far it is, with the token that is "
                           f"mounted at {ACCOUNT}")


def _may_speak(speaker: _From, pod: Object) -> bool:
    if speaker.node:
        return bool((pod.get("spec") or {}).get("nodeName") == speaker.node)
    return not speaker.uid or speaker.uid == uid_of(pod)
