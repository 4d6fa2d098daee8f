"""Certificates that we make ourselves: an authority of our own, and what it vouches for. Keys are new each time."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from trainmaster.kube.tls import ClientCertificate as Identity


def authority(name: str, organization: str, now: datetime, valid: timedelta) -> Identity:
    """An authority that signs what `issued` makes."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name(name, organization)
    built = (
        _builder(subject, subject, key, now, valid)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    return _pem(built, key)


def issued(by: Identity, names: Sequence[str], now: datetime, valid: timedelta) -> Identity:
    """A certificate for a server of these names, vouched for by an authority."""
    issuer, signer = x509.load_pem_x509_certificate(by.certificate), _private(by.key)
    key = ec.generate_private_key(ec.SECP256R1())
    built = (
        _builder(_name(names[0]), issuer.subject, key, now, valid)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
        .sign(signer, hashes.SHA256())
    )
    return _pem(built, key)


def serves(pair: Identity, by: bytes, names: Sequence[str], until: datetime) -> bool:
    """Whether a certificate is good for all the names until then, vouched for by the authority, with the key it has."""
    try:
        certificate, issuer = (x509.load_pem_x509_certificate(pem) for pem in (pair.certificate, by))
        certificate.verify_directly_issued_by(issuer)
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        matches = _private(pair.key).public_key() == certificate.public_key()
    except Exception:  # noqa: BLE001  whatever is wrong with what somebody stored there, it cannot be used
        return False
    covered = set(names) <= set(found.get_values_for_type(x509.DNSName))
    lasts = min(certificate.not_valid_after_utc, issuer.not_valid_after_utc) > until.astimezone(UTC)
    return covered and lasts and matches


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, valid: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1)).not_valid_after(now + valid)    # clocks differ a little
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, key_cert_sign=signs, crl_sign=signs, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )


def _name(common: str, organization: str = "") -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, common[:64])]      # the most that fits; the names are elsewhere
    if organization:
        parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    return x509.Name(parts)


def _private(pem: bytes) -> ec.EllipticCurvePrivateKey:
    found = serialization.load_pem_private_key(pem, None)
    if not isinstance(found, ec.EllipticCurvePrivateKey):
        raise TypeError("not a key of ours")
    return found


def _pem(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Identity:
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Identity(certificate.public_bytes(serialization.Encoding.PEM), private)
