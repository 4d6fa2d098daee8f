"""The cluster's own certificate authority, its server certificate and its tokens, made once per home, mode 0600."""

import json
import os
import secrets
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

# Long enough that no cluster of a laptop meets it; browsers, which limit this, do not see these certificates.
VALID = timedelta(days=3650)
SERVER_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
                "kubernetes.default.svc.cluster.local")
SERVER_ADDRESSES = ("127.0.0.1", "10.96.0.1", "10.88.0.1")
USERS = ("admin", "node")


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
        return _loaded(self.folder / "accounts.key")

    def client_certificate(self, user: str, groups: Sequence[str], now: datetime) -> tuple[bytes, bytes]:
        """A certificate and its key, as PEM, for a user in these groups."""
        key, signer = ec.generate_private_key(ec.SECP256R1()), _loaded(self.folder / "ca.key")
        names = [*((NameOID.ORGANIZATION_NAME, group) for group in groups), (NameOID.COMMON_NAME, user)]
        subject = x509.Name([x509.NameAttribute(kind, value) for kind, value in names])
        issuer = x509.load_pem_x509_certificate(self.authority).subject
        made = (
            _builder(subject, issuer, key, now)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
            .sign(signer, hashes.SHA256())
        )
        return made.public_bytes(serialization.Encoding.PEM), _private(key)


def ensure(folder: Path, now: datetime) -> Keys:
    """Make what is missing. Written last and at once, the tokens say that all of it is there."""
    complete = folder / "tokens.json"
    if not complete.exists():
        _make_certificates(folder, now)
        _write(complete, json.dumps({user: secrets.token_urlsafe(32) for user in USERS}).encode())
    if not (folder / "accounts.key").exists():      # a home of an earlier release has none
        _write(folder / "accounts.key", _private(ec.generate_private_key(ec.SECP256R1())))
    return Keys(folder, json.loads(complete.read_text()))


def _loaded(path: Path) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key


def _make_certificates(folder: Path, now: datetime) -> None:
    authority_key, server_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority_name = _name("trainmaster")
    authority = (
        _builder(authority_name, authority_name, authority_key, now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    names = [*map(x509.DNSName, SERVER_NAMES), *(x509.IPAddress(ip_address(a)) for a in SERVER_ADDRESSES)]
    server = (
        _builder(_name("kube-apiserver"), authority_name, server_key, now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False
        )
        .sign(authority_key, hashes.SHA256())
    )
    _write(folder / "ca.key", _private(authority_key))
    _write(folder / "ca.crt", authority.public_bytes(serialization.Encoding.PEM))
    _write(folder / "server.key", _private(server_key))
    _write(folder / "server.crt", server.public_bytes(serialization.Encoding.PEM))


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1)).not_valid_after(now + VALID)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, key_cert_sign=signs_certificates, crl_sign=signs_certificates, content_commitment=False,
        key_encipherment=False, data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write(path: Path, content: bytes) -> None:
    """Whole or not at all, and never readable by others on the way."""
    beside = path.with_name(path.name + ".new")
    beside.unlink(missing_ok=True)
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
