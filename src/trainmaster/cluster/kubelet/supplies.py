"""What the API holds for a pod's volumes and environments: fetched when it starts, and again when it has changed.

Tokens are the one thing that ages by itself. Whether one is due for renewal is read from the token in the volume, so a
new agent knows as much as the one that wrote it.
"""

import asyncio
import base64
import binascii
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from trainmaster.api.claims import claim_of, foreign
from trainmaster.api.core import CLAIMS, CONFIG_MAPS, PERSISTENT_VOLUMES, SECRETS, SERVICE_ACCOUNTS
from trainmaster.api.meta import Object, Resource, metadata, namespace_of, revision_of
from trainmaster.cluster.kubelet import volumefiles, volumes
from trainmaster.cluster.kubelet.environment import Claimed, Sources, TokenPlace
from trainmaster.cluster.kubelet.holder import GATEWAY
from trainmaster.cluster.kubelet.life import Life
from trainmaster.kube.client import Client
from trainmaster.kube.errors import Conflict, NotFound
from trainmaster.runtime.clock import Clock

PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
PROVISIONER = "rancher.io/local-path"
# How much of its life a token has behind it when it is renewed; and no token gets older than a day.
WORN = 0.8
OLDEST = timedelta(hours=24)
# A token that cannot be had now is asked for again after this time.
AGAIN = timedelta(minutes=1)


@dataclass(slots=True)
class Supplies:
    """Reads for pods."""

    client: Client
    clock: Clock
    allocatable: Mapping[str, str]
    links: Callable[[Object], Mapping[str, str]] = lambda _pod: {}      # a pod's variables about services
    shown: Callable[[Resource, str, str], Awaitable[Object]] | None = None      # reads ConfigMaps and Secrets

    async def prepare(self, life: Life) -> volumes.Volumes:
        """Make all volumes of a pod. Raises VolumeError."""
        # Nearly every pod has a token: fetched beside the rest, it costs the start no time of its own.
        maps, secrets = volumefiles.references(life.pod)
        sources, tokens, claims = await asyncio.gather(
            self.sources(life, maps, secrets), self._tokens(life), self._claims(life.pod)
        )
        sources = replace(sources, tokens=tokens, claims=claims)
        made = await asyncio.to_thread(volumes.prepare, life.pod, life.places.volumes, sources)
        self._note(life, tokens.values())
        return made

    async def refresh(self, life: Life) -> None:
        """Bring the volumes that the API fills up to date. Raises VolumeError when something they need is gone."""
        life.stale = False
        life.fetched |= life.latest            # what is read from here on is no older
        maps, secrets = volumefiles.references(life.pod)
        sources, tokens = await asyncio.gather(self.sources(life, maps, secrets), self._tokens(life))
        self._note(life, tokens.values())
        await asyncio.to_thread(volumes.refresh, life.pod, life.places.volumes, replace(sources, tokens=tokens))

    async def sources(self, life: Life, maps: set[str], secrets: set[str]) -> Sources:
        """These ConfigMaps and Secrets, as far as they exist, and what the pod can be told of itself."""
        namespace = namespace_of(life.pod)

        async def fetched(resource: Resource, names: set[str]) -> dict[str, Object]:
            found = {}
            for name in names:
                life.fetched[resource.plural, name] = ""
                with suppress(NotFound):
                    found[name] = await (self.shown or self.client.get)(resource, name, namespace)
                    life.fetched[resource.plural, name] = revision_of(found[name])
            return found

        fields = {"status.hostIP": GATEWAY, "status.hostIPs": GATEWAY}
        if life.address:
            fields |= {"status.podIP": life.address, "status.podIPs": life.address}
        return Sources(
            await fetched(CONFIG_MAPS, maps), await fetched(SECRETS, secrets), fields, self.allocatable,
            links=self.links(life.pod),
        )

    async def _tokens(self, life: Life) -> dict[TokenPlace, str]:
        """The tokens of the pod's account, bound to the pod: those it has while they are good, else new ones. If the
        account or the pod is gone or replaced, what is there is all there is."""
        found: dict[TokenPlace, str] = {}
        pod, now = life.pod, self.clock.now()
        for place, spec in volumefiles.tokens(pod).items():
            volume, path = place
            if (known := volumefiles.written(life.places.volumes / volume, path)) is not None:
                found[place] = known.decode(errors="replace")
                if (due := renewal(found[place])) is not None and now < due:
                    continue
            request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
            with suppress(NotFound, Conflict):
                answer = await self.client.create(
                    SERVICE_ACCOUNTS, request, namespace=namespace_of(pod), name=volumefiles.account_of(pod),
                    subresource="token",
                )
                found[place] = str(answer["status"]["token"])
        return found

    def _note(self, life: Life, tokens: Iterable[str]) -> None:
        dues = [due for token in tokens if (due := renewal(token)) is not None]
        life.renew_at = max(min(dues), self.clock.now() + AGAIN) if dues else None

    async def _claims(self, pod: Object) -> dict[str, Claimed]:
        found = {}
        for volume in volumefiles.volumes_of(pod):
            if name := claim_of(pod, volume):
                with suppress(NotFound):
                    claim = await self.client.get(CLAIMS, name, namespace_of(pod))
                    why = foreign(pod, claim) if "ephemeral" in volume else ""
                    found[name] = Claimed(trouble=why) if why else await self._claimed(claim)
        return found

    async def _claimed(self, claim: Object) -> Claimed:
        name = str(claim["spec"].get("volumeName") or "")
        if (claim.get("status") or {}).get("phase") != "Bound" or not name:
            return Claimed(trouble="PVC is not bound")
        try:
            return place_of(await self.client.get(PERSISTENT_VOLUMES, name))
        except NotFound:
            return Claimed(trouble=f'its volume "{name}" does not exist')


def place_of(volume: Object) -> Claimed:
    """Where a PersistentVolume is on this machine."""
    spec = volume["spec"]
    provisioned = (metadata(volume).get("annotations") or {}).get(PROVISIONED_BY) == PROVISIONER
    if spec.get("volumeMode") == "Block":
        return Claimed(trouble="its volume is a block device, which this node cannot give to a container")
    for kind in ("hostPath", "local"):
        if spec.get(kind):
            path = str(spec[kind].get("path") or "")
            return Claimed(path, provisioned or spec[kind].get("type") == "DirectoryOrCreate")
    kinds = ", ".join(sorted(key for key, value in spec.items() if isinstance(value, dict) and key not in (
        "capacity", "claimRef", "nodeAffinity"))) or "nothing"
    return Claimed(trouble=f"its volume is of a kind that this node cannot mount ({kinds}); it has hostPath and local")


def renewal(token: str) -> datetime | None:
    """When a token should be replaced; None for one that does not say how long it lives."""
    try:
        _, body, _ = token.split(".")
        claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        issued, expires = int(claims["iat"]), int(claims["exp"])
    except (ValueError, KeyError, TypeError, binascii.Error):
        return None
    since = datetime.fromtimestamp(issued, UTC)
    return since + min(timedelta(seconds=(expires - issued) * WORN), OLDEST)
