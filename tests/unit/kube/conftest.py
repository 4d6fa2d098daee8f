"""A certificate authority, and servers on loopback that stand for the other end of the wire."""

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

PEM = serialization.Encoding.PEM


class Authority:
    """Issues certificates for tests, as PEM: (certificate, key)."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
        made = self._builder(self._name, self._key.public_key()).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.pem = made.sign(self._key, hashes.SHA256()).public_bytes(PEM)

    def issue(self, name: str, *, address: str = "127.0.0.1") -> tuple[bytes, bytes]:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        names = [x509.DNSName(name), x509.IPAddress(ipaddress.ip_address(address))]
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        made = self._builder(subject, key.public_key()).add_extension(x509.SubjectAlternativeName(names), False)
        signed = made.add_extension(usage, False).sign(self._key, hashes.SHA256())
        secret = key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        return signed.public_bytes(PEM), secret

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
        )


@pytest.fixture(scope="session")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="session")
def stranger() -> Authority:
    """An authority that nobody trusts."""
    return Authority()


@pytest.fixture(scope="session")
def server_files(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The server's certificate and key in one file, as the ssl module reads them."""
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    path.write_bytes(b"".join(authority.issue("localhost")))
    return path
