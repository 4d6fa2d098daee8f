"""Whom we trust and who we are on a TLS connection, from PEM bytes.

Private keys come as bytes, since a kubeconfig may carry them inside; the standard library reads them from files only.
They pass through an anonymous file in memory, so that no key is written to a disk it was not already on,
where the system has such files.
"""

import os
import ssl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A certificate (chain) and its key, both PEM. The key never shows in a repr."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "ClientCertificate(...)"


def client_context(ca: bytes | None, identity: ClientCertificate | None, *, verify: bool = True) -> ssl.SSLContext:
    """Trusts `ca` alone, or the system's authorities when there is none. Raises ValueError for PEM that is none."""
    try:
        context = ssl.create_default_context(cadata=ca.decode() if ca else None)
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise ValueError(f"the certificate authority is not a PEM certificate: {error}") from error
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if identity is not None:
        present(context, identity)
    return context


def server_context(identity: ClientCertificate) -> ssl.SSLContext:
    """Shows a certificate to whoever connects. Raises ValueError for one that cannot be used."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    present(context, identity)
    return context


def present(context: ssl.SSLContext, identity: ClientCertificate) -> None:
    """Show this certificate on connections that begin from now on. Raises ValueError for one that cannot be used."""
    content = identity.certificate.rstrip() + b"\n" + identity.key.rstrip() + b"\n"
    try:
        with _file(content) as path:
            context.load_cert_chain(path)
    except ssl.SSLError as error:
        # OpenSSL's own text names the cause and never quotes the key.
        raise ValueError(f"the server or client certificate or its key cannot be used: {error}") from error


@contextmanager
def _file(content: bytes) -> Iterator[str]:
    """A path that has the content until the end of the block: in memory on Linux, elsewhere a file of our own."""
    if sys.platform != "linux":
        import tempfile

        handle, path = tempfile.mkstemp(prefix="trainmaster-")      # readable by us alone
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            yield path
        finally:
            Path(path).unlink()
        return
    memory = os.memfd_create("client-certificate", os.MFD_CLOEXEC)
    try:
        with os.fdopen(os.dup(memory), "wb") as file:
            file.write(content)
        yield f"/proc/self/fd/{memory}"
    finally:
        os.close(memory)
