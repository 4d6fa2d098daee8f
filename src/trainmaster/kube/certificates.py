"""Certificates that we make ourselves: an authority of our own, and what it vouches for. Keys are new each time."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

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


def issued(by: Identity, names: Sequence[str], now: datetime, valid: timedelta, *, addresses: Sequence[str] = (),
           common_name: str = "") -> Identity:
    """A certificate for a server of these names and addresses, vouched for by an authority."""
    others = [*map(x509.DNSName, names), *(x509.IPAddress(ip_address(each)) for each in addresses)]
    return _vouched(by, _name(common_name or names[0]), ExtendedKeyUsageOID.SERVER_AUTH, now, valid,
                    x509.SubjectAlternativeName(others))


def of_user(by: Identity, user: str, groups: Sequence[str], now: datetime, valid: timedelta) -> Identity:
    """A certificate with which a user of these groups says who they are."""
    names = [*((NameOID.ORGANIZATION_NAME, group) for group in groups), (NameOID.COMMON_NAME, user)]
    subject = x509.Name([x509.NameAttribute(kind, value) for kind, value in names])
    return _vouched(by, subject, ExtendedKeyUsageOID.CLIENT_AUTH, now, valid)


def _vouched(by: Identity, subject: x509.Name, usage: x509.ObjectIdentifier, now: datetime, valid: timedelta,
             *more: x509.ExtensionType) -> Identity:
    issuer, signer = x509.load_pem_x509_certificate(by.certificate), private(by.key)
    key = ec.generate_private_key(ec.SECP256R1())
    built = (
        _builder(subject, issuer.subject, key, now, valid)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    for extension in more:
        built = built.add_extension(extension, critical=False)
    return _pem(built.sign(signer, hashes.SHA256()), key)


def serves(pair: Identity, by: bytes, names: Sequence[str], until: datetime) -> bool:
    """Whether a certificate is good for all the names until then, vouched for by the authority, with the key it has."""
    try:
        certificate, issuer = (x509.load_pem_x509_certificate(pem) for pem in (pair.certificate, by))
        certificate.verify_directly_issued_by(issuer)
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        matches = private(pair.key).public_key() == certificate.public_key()
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


def private(pem: bytes) -> ec.EllipticCurvePrivateKey:
    """A key of the kind that we make."""
    found = serialization.load_pem_private_key(pem, None)
    if not isinstance(found, ec.EllipticCurvePrivateKey):
        raise TypeError("not a key of ours")
    return found


def new_key() -> bytes:
    """A private key as PEM."""
    return _written(ec.generate_private_key(ec.SECP256R1()))


def _pem(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Identity:
    return Identity(certificate.public_bytes(serialization.Encoding.PEM), _written(key))


def _written(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
