"""The cluster's own certificate authority, its server certificate and its tokens, made once per home, mode 0600."""

import json
import secrets
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec

from trainmaster.kube import certificates
from trainmaster.kube.tls import ClientCertificate
from trainmaster.local import files

# Long enough that no cluster of a laptop meets it; browsers, which limit this, do not see these certificates.
VALID = timedelta(days=3650)
SERVER_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
                "kubernetes.default.svc.cluster.local")
SERVER_ADDRESSES = ("127.0.0.1", "10.96.0.1", "10.88.0.1")


@dataclass(frozen=True, slots=True)
class Keys:
    """What `ensure` made or found."""

    folder: Path
    tokens: dict[str, str]

    @property
    def authority(self) -> bytes:
        return (self.folder / "ca.crt").read_bytes()

    def server_context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.folder / "server.crt", self.folder / "server.key")
        # Who shows a certificate must show one of ours; who shows none has a token.
        context.load_verify_locations(self.folder / "ca.crt")
        context.verify_mode = ssl.CERT_OPTIONAL
        return context

    @property
    def account_key(self) -> ec.EllipticCurvePrivateKey:
        """Signs the tokens of service accounts."""
        return certificates.private((self.folder / "accounts.key").read_bytes())

    def client_certificate(self, user: str, groups: Sequence[str], now: datetime) -> tuple[bytes, bytes]:
        """A certificate and its key, as PEM, for a user in these groups."""
        signer = ClientCertificate(self.authority, (self.folder / "ca.key").read_bytes())
        made = certificates.of_user(signer, user, groups, now, VALID)
        return made.certificate, made.key


def ensure(folder: Path, now: datetime, users: Sequence[str] = ("admin", "node")) -> Keys:
    """Make what is missing. Written last and at once, the tokens say that all of it is there."""
    complete = folder / "tokens.json"
    if not complete.exists():
        _make_certificates(folder, now)
    known = json.loads(complete.read_text()) if complete.exists() else {}
    if missing := [user for user in users if user not in known]:
        files.write(complete, json.dumps({**known, **{user: secrets.token_urlsafe(32) for user in missing}}).encode())
    if not (folder / "accounts.key").exists():      # a home of an earlier release has none
        files.write(folder / "accounts.key", certificates.new_key())
    return Keys(folder, json.loads(complete.read_text()))


def _make_certificates(folder: Path, now: datetime) -> None:
    authority = certificates.authority("trainmaster", "", now, VALID)
    server = certificates.issued(authority, SERVER_NAMES, now, VALID, addresses=SERVER_ADDRESSES,
                                 common_name="kube-apiserver")
    for name, made in (("ca", authority), ("server", server)):
        files.write(folder / f"{name}.key", made.key)
        files.write(folder / f"{name}.crt", made.certificate)
