"""A real etcd and kube-apiserver on loopback, made for one test session and gone with it.

Everything lives in one folder: keys, tokens, data, logs, kubeconfigs. Each user has a static token, all of them may do
everything; who may do what is not what this tier compares. etcd does not sync to disk: nothing here has to survive.
"""

import contextlib
import datetime
import ipaddress
import json
import random
import secrets
import socket
import ssl
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.kubernetes.processes import NotReady, Processes, processes

from trainmaster.kube.kubeconfig import document

USERS = ("admin", "operator", "kubelet", "controllers")
PORT_TAKEN = "address already in use"


@dataclass(slots=True)
class ControlPlane:
    binaries: Path
    processes: Processes
    tokens: dict[str, str] = field(default_factory=lambda: {user: secrets.token_hex(16) for user in USERS})
    port: int = 0
    etcd: str = ""
    more: Sequence[str] = ()    # arguments of kube-apiserver
    apiserver: str = "kube-apiserver"   # which of those that were built

    @property
    def folder(self) -> Path:
        return self.processes.folder

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def certificate(self) -> Path:
        return self.folder / "tls.crt"

    def kubeconfig(self, user: str = "admin") -> Path:
        """Written when asked for: the port is known only after the start. JSON is YAML."""
        path = self.folder / f"{user}.kubeconfig"
        path.write_text(json.dumps(document(self.server, self.certificate.read_bytes(), self.tokens[user])))
        path.chmod(0o600)
        return path

    def kubeconfig_with_certificate(self) -> Path:
        """The same access as `admin`, proven by a client certificate instead of a token."""
        path, content = self.folder / "certificate.kubeconfig", document(self.server, self.certificate.read_bytes(), "")
        content["users"][0]["user"] = {"client-certificate": "admin.crt", "client-key": "admin.key"}
        path.write_text(json.dumps(content))
        return path

    def start(self) -> None:
        write_keys(self.folder)
        rows = (f'{token},{user},{user},"system:masters"\n' for user, token in self.tokens.items())
        (self.folder / "tokens.csv").write_text("".join(rows))
        self._launch("etcd", self._etcd_arguments, self._etcd_is_ready)
        self._launch(self.apiserver, self._apiserver_arguments, lambda: self._answers("/readyz"))

    def start_controllers(self, *controllers: str) -> None:
        """Run kube-controller-manager with these controllers and no others."""
        access, port = self.kubeconfig("controllers"), free_port()
        arguments = (
            f"--kubeconfig={access}",
            f"--authentication-kubeconfig={access}",
            f"--authorization-kubeconfig={access}",
            f"--controllers={','.join(controllers)}",
            f"--service-account-private-key-file={self.folder / 'accounts.key'}",
            f"--root-ca-file={self.certificate}",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            "--kube-api-qps=200",  # it is scenery: its own throttling must not be what a test waits for
            "--kube-api-burst=400",
        )
        self._launch("kube-controller-manager", lambda: arguments, lambda: listens(port))

    def start_scheduler(self) -> None:
        access, port = self.kubeconfig("controllers"), free_port()
        arguments = (
            f"--kubeconfig={access}",
            f"--authentication-kubeconfig={access}",
            f"--authorization-kubeconfig={access}",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
        )
        self._launch("kube-scheduler", lambda: arguments, lambda: listens(port))

    def crash_apiserver(self) -> None:
        """Kill kube-apiserver and start another on the same port: watches break, its memory of the past is gone."""
        self.processes.stop(self.apiserver, kill=True)
        arguments = self._apiserver_arguments(self.port)
        self._launch(self.apiserver, lambda: arguments, lambda: self._answers("/readyz"))

    def compact(self, revision: int) -> None:
        """Make etcd forget everything before `revision`, now instead of at the next five-minute mark."""
        body = json.dumps({"revision": str(revision), "physical": True}).encode()
        request = urllib.request.Request(f"{self.etcd}/v3/kv/compaction", data=body)
        with urllib.request.urlopen(request, timeout=10) as answer:
            answer.read()

    def _etcd_arguments(self) -> Sequence[str]:
        self.etcd, peer = f"http://127.0.0.1:{free_port()}", f"http://127.0.0.1:{free_port()}"
        return (
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={self.etcd}",
            f"--advertise-client-urls={self.etcd}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        )

    def _apiserver_arguments(self, port: int = 0) -> Sequence[str]:
        self.port = port or free_port()
        return (
            f"--etcd-servers={self.etcd}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",  # a Service cannot point at loopback
            f"--secure-port={self.port}",
            f"--tls-cert-file={self.certificate}",
            f"--tls-private-key-file={self.folder / 'tls.key'}",
            f"--client-ca-file={self.certificate}",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--anonymous-auth=false",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self.folder / 'accounts.pub'}",
            f"--service-account-signing-key-file={self.folder / 'accounts.key'}",
            "--disable-admission-plugins=ServiceAccount",  # nobody makes the accounts here, and no pod would start
            *self.more,
        )

    def _etcd_is_ready(self) -> bool:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.etcd}/health", timeout=5) as answer:
            return bool(answer.status == 200)
        return False

    def _answers(self, path: str) -> bool:
        context = ssl.create_default_context(cafile=str(self.certificate))
        request = urllib.request.Request(self.server + path)
        request.add_header("Authorization", f"Bearer {self.tokens['admin']}")
        with contextlib.suppress(OSError), urllib.request.urlopen(request, timeout=5, context=context) as answer:
            return bool(answer.status == 200)
        return False

    def _launch(self, name: str, arguments: Callable[[], Sequence[str]], ready: Callable[[], bool]) -> None:
        """Start a program and wait for it; on a port that somebody took in between, try another one."""
        for attempts_left in (2, 1, 0):
            self.processes.start(name, [self.binaries / name, *arguments()])
            try:
                return self.processes.wait(name, ready)
            except NotReady as problem:
                if PORT_TAKEN not in str(problem) or not attempts_left:
                    raise
        return None


@contextlib.contextmanager
def running(binaries: Path, folder: Path, *more: str, apiserver: str = "kube-apiserver") -> Iterator[ControlPlane]:
    """`more` are arguments of the API server, which may be an old one."""
    with processes(folder) as started:
        plane = ControlPlane(binaries, started, more=more, apiserver=apiserver)
        plane.start()
        yield plane


def write_keys(folder: Path) -> None:
    """A certificate for the server, which is its own authority; one that it signed for a client; an account key."""
    key, accounts = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    server = _certificate([(NameOID.COMMON_NAME, "test")], key, key, is_authority=True)
    client_key = ec.generate_private_key(ec.SECP256R1())
    administrator = [(NameOID.ORGANIZATION_NAME, "system:masters"), (NameOID.COMMON_NAME, "certified")]
    client = _certificate(administrator, client_key, key, is_authority=False)
    public = accounts.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    for file, content in (
        ("tls.crt", server),
        ("tls.key", _private_pem(key)),
        ("admin.crt", client),
        ("admin.key", _private_pem(client_key)),
        ("accounts.key", _private_pem(accounts)),
        ("accounts.pub", public),
    ):
        (folder / file).write_bytes(content)
        (folder / file).chmod(0o600)


def _certificate(
    subject: Sequence[tuple[x509.ObjectIdentifier, str]],
    key: ec.EllipticCurvePrivateKey,
    signer: ec.EllipticCurvePrivateKey,
    *,
    is_authority: bool,
) -> bytes:
    now = datetime.datetime.now(datetime.UTC)
    loopback = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(kind, value) for kind, value in subject]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=0 if is_authority else None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    if is_authority:
        builder = builder.add_extension(loopback, critical=False)
    return builder.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def free_port() -> int:
    """For a program that takes a while until it listens: so none of those that the kernel gives to connections."""
    while True:
        port = random.randrange(10_000, 32_000)
        with contextlib.suppress(OSError), socket.socket() as sock:
            sock.bind(("127.0.0.1", port))
            return port


def listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
