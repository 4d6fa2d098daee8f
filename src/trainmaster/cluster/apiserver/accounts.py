"""Tokens of service accounts: signed when asked for, believed as long as what they are bound to is there.

A token is a JWT that says whose it is, for whom (audience) and until when, and names the account, and maybe the pod,
secret or node, by UID. A signature is verified once and remembered; whether the objects still live is looked up with
every request, so that a token ends with its pod. PyJWT signs and verifies; nothing of that is written here.
"""

import base64
import hashlib
import uuid
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import jwt
import orjson
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from trainmaster.api.core import NODES, PODS, SECRETS, SERVICE_ACCOUNTS
from trainmaster.api.meta import Object, Resource, timestamp
from trainmaster.cluster.apiserver import causes, failures
from trainmaster.cluster.apiserver.auth import ACCOUNT_PREFIX, Identity, account
from trainmaster.cluster.store import Record, Store
from trainmaster.runtime.clock import Clock

ISSUER = "https://kubernetes.default.svc"
ALGORITHM = "ES256"
SHORTEST, USUAL, LONGEST = 600, 3600, 1 << 32     # seconds
# Admission asks for this number for every pod. Such a token is believed for a year, if its pod lives that long: there
# are programs that read it only once, and the node does not renew it.
OF_PODS, YEAR = 3607, 365 * 24 * 3600
MOST_REMEMBERED = 4096
_EXTRA = "authentication.kubernetes.io"
_BINDABLE = {"Pod": PODS, "Secret": SECRETS, "Node": NODES}


@dataclass(slots=True)
class Believed:
    """A token whose signature was verified."""

    claims: Object
    who: Identity
    names: tuple[tuple[str, str], ...]     # key and uid of what it is bound to, which must live
    seen: dict[str, int]       # the revision at which each object it names was last found to be the one


class Accounts:
    """Signs and recognises. Without a key it makes one, and its tokens end with it."""

    def __init__(self, store: Store, clock: Clock, key: ec.EllipticCurvePrivateKey | None = None) -> None:
        self._store = store
        self._clock = clock
        self._key = key or ec.generate_private_key(ec.SECP256R1())
        self._public = self._key.public_key()
        self._believed: OrderedDict[bytes, Believed] = OrderedDict()

    @property
    def key_id(self) -> str:
        der = self._public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        return base64.urlsafe_b64encode(hashlib.sha256(der).digest()).rstrip(b"=").decode()

    def keys(self) -> Object:
        """GET /openid/v1/jwks."""
        numbers = self._public.public_numbers()
        x, y = (base64.urlsafe_b64encode(part.to_bytes(32)).rstrip(b"=").decode() for part in (numbers.x, numbers.y))
        return {"keys": [{"use": "sig", "kty": "EC", "kid": self.key_id, "crv": "P-256", "alg": ALGORITHM,
                          "x": x, "y": y}]}

    @staticmethod
    def configuration(server: str) -> Object:
        """GET /.well-known/openid-configuration."""
        return {"issuer": ISSUER, "jwks_uri": f"{server}/openid/v1/jwks", "response_types_supported": ["id_token"],
                "subject_types_supported": ["public"], "id_token_signing_alg_values_supported": [ALGORITHM]}

    def request(self, namespace: str, name: str, asked: Object) -> Object:
        """Answer a TokenRequest. Raises Failure 404, 409 or 422."""
        spec, now = asked.get("spec") or {}, self._clock.now()
        uid = self._uid(SERVICE_ACCOUNTS, namespace, name)
        seconds = spec.get("expirationSeconds")
        seconds = USUAL if seconds is None else int(seconds)
        if fault := ("less than 10 minutes" if seconds < SHORTEST else "larger than 2^32 seconds"
                     if seconds > LONGEST else ""):
            cause = causes.invalid("spec.expirationSeconds", seconds, f"may not specify a duration {fault}")
            raise failures.invalid_kind("TokenRequest", "authentication.k8s.io", "", [cause])
        audiences = list(spec.get("audiences") or [ISSUER])
        private: Object = {"namespace": namespace, "serviceaccount": {"name": name, "uid": uid}}
        if (bound := spec.get("boundObjectRef")) is not None:
            private |= self._bound(namespace, name, bound)
        began, ends = int(now.timestamp()), now + timedelta(seconds=seconds)
        lasting = seconds
        if seconds == OF_PODS and audiences == [ISSUER]:
            lasting, private["warnafter"] = YEAR, began + seconds
        claims = {"aud": audiences, "exp": began + lasting, "iat": began, "iss": ISSUER, "jti": str(uuid.uuid4()),
                  "kubernetes.io": private, "nbf": began, "sub": f"{ACCOUNT_PREFIX}{namespace}:{name}"}
        token = jwt.encode(claims, self._key, ALGORITHM, headers={"kid": self.key_id, "typ": None})
        return {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1",
                "metadata": {"name": name, "namespace": namespace, "creationTimestamp": timestamp(now)},
                "spec": {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": bound},
                "status": {"token": token, "expirationTimestamp": timestamp(ends)}}

    def identify(self, token: str, audiences: Sequence[str] = ()) -> tuple[Identity, list[str]] | None:
        """Whose token it is and which of the audiences it is for (ours, if none are named); None if it is worthless."""
        found = self._verified(token)
        if found is None:
            return None
        claims = found.claims
        fitting = [each for each in audiences or (ISSUER,) if each in claims["aud"]]
        moment = self._clock.now().timestamp()
        if not fitting or not claims["nbf"] <= moment < claims["exp"] \
                or not all(self._is(found, *each) for each in found.names):
            return None
        return found.who, fitting

    def _verified(self, token: str) -> Believed | None:
        digest = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        if (known := self._believed.get(digest)) is not None:
            self._believed.move_to_end(digest)
            return known
        required = ["aud", "exp", "iss", "jti", "nbf", "kubernetes.io"]
        try:
            # Times and audience are judged with every request, by our own clock.
            claims = jwt.decode(token, self._public, [ALGORITHM], issuer=ISSUER, options={
                "require": required, "verify_exp": False, "verify_nbf": False, "verify_iat": False,
                "verify_aud": False})
        except (jwt.InvalidTokenError, ValueError):
            return None
        found = self._believed[digest] = Believed(claims, _identity(claims), _names(claims), {})
        if len(self._believed) > MOST_REMEMBERED:
            self._believed.popitem(last=False)
        return found

    def _is(self, found: Believed, key: str, uid: str) -> bool:
        record = self._store.get(key)
        if record is None:
            return False
        if found.seen.get(key) != record.revision:
            if _uid(record) != uid:
                return False
            found.seen[key] = record.revision
        return True

    def _bound(self, namespace: str, name: str, bound: Object) -> Object:
        kind = bound.get("kind") or ""
        if (resource := _BINDABLE.get(kind)) is None:
            raise failures.bad_request(f"cannot bind token for serviceaccount {failures.quoted(name)} to object with "
                                       f"kind {failures.quoted(kind)}")
        uid = self._uid(resource, namespace, bound.get("name") or "")
        if bound.get("uid") and bound["uid"] != uid:
            raise failures.conflict(resource, bound["name"], (
                f"the UID in the bound object reference ({bound['uid']}) does not match the UID in record. "
                "The object might have been deleted and then recreated"))
        found: Object = {kind.lower(): {"name": bound["name"], "uid": uid}}
        if kind == "Pod":
            pod = self._object(PODS, namespace, bound["name"])
            if (pod["spec"].get("serviceAccountName") or "default") != name:
                raise failures.bad_request(f"cannot bind token for serviceaccount {failures.quoted(name)} to pod "
                                           "running with different serviceaccount name.")
            node = pod["spec"].get("nodeName")
            if node and (record := self._store.get(_key(NODES, "", node))) is not None:
                found["node"] = {"name": node, "uid": _uid(record)}
        return found

    def _uid(self, resource: Resource, namespace: str, name: str) -> str:
        return str(self._object(resource, namespace, name)["metadata"]["uid"])

    def _object(self, resource: Resource, namespace: str, name: str) -> Object:
        record = self._store.get(_key(resource, namespace, name))
        if record is None:
            raise failures.not_found(resource, name)
        found: Object = orjson.loads(record.value)
        return found


def _identity(claims: Object) -> Identity:
    private = claims["kubernetes.io"]
    extra = [(f"{_EXTRA}/credential-id", (f"JTI={claims['jti']}",))]
    for kind in ("node", "pod"):
        if (bound := private.get(kind)) is not None:
            extra += [(f"{_EXTRA}/{kind}-name", (bound["name"],)), (f"{_EXTRA}/{kind}-uid", (bound["uid"],))]
    whose = private["serviceaccount"]
    return account(private["namespace"], whose["name"], whose["uid"], tuple(sorted(extra)))


def _names(claims: Object) -> tuple[tuple[str, str], ...]:
    private = claims["kubernetes.io"]
    namespace, whose = private["namespace"], private["serviceaccount"]
    found = [(_key(SERVICE_ACCOUNTS, namespace, whose["name"]), whose["uid"])]
    for kind, resource in _BINDABLE.items():
        # The node of a pod is told along with it; only what the token is bound to must live.
        if (bound := private.get(kind.lower())) is not None and not (kind == "Node" and "pod" in private):
            found.append((_key(resource, namespace, bound["name"]), bound["uid"]))
    return tuple(found)


def _key(resource: Resource, namespace: str, name: str) -> str:
    place = f"{namespace}/{name}" if resource.namespaced else name
    return f"/{resource.group or 'core'}/{resource.plural}/{place}"


def _uid(record: Record) -> str:
    return str(orjson.loads(record.value)["metadata"]["uid"])
