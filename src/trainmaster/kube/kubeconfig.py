"""Where the cluster is and who we are: kubeconfig files, and the account of a pod.

Read by ourselves: the formats are small, and a file that asks for something we do not do (a proxy, a program that wants
a terminal) is refused with a sentence instead of failing later with a 401.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from trainmaster.api.meta import Object
from trainmaster.kube.tls import ClientCertificate
from trainmaster.kube.transport import Transport

if TYPE_CHECKING:      # what talks is loaded by those who talk, and by way of one transport only
    from trainmaster.kube.blocking import BlockingTransport
    from trainmaster.kube.credentials import Plugin
    from trainmaster.kube.http import Timeouts

NAME = "trainmaster"
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class KubeconfigError(Exception):
    """The file cannot be used; the message says which part and what to do."""


@dataclass(frozen=True, slots=True)
class Access:
    """All that is needed to reach a cluster. Credentials do not show in a repr."""

    server: str
    ca: bytes | None = field(default=None, repr=False)
    token: str = field(default="", repr=False)
    client_cert: bytes | None = field(default=None, repr=False)
    client_key: bytes | None = field(default=None, repr=False)
    namespace: str = "default"
    context: str = ""
    token_file: Path | None = None
    verify: bool = True
    server_name: str = ""
    plugin: "Plugin | None" = None


def load(path: Path, context: str | None = None) -> Access:
    """The access that a file's `context` (the current one by default) describes. Raises KubeconfigError."""
    document = _parsed(path)
    chosen = context or str(document.get("current-context") or "")
    if not chosen:
        raise KubeconfigError(f"{path}: no current-context is set. Set one, or name the context to use.")
    about = _named(document, "contexts", "context", chosen, path)
    cluster = _named(document, "clusters", "cluster", str(about.get("cluster", "")), path)
    user = _named(document, "users", "user", str(about["user"]), path) if about.get("user") else {}
    server = str(cluster.get("server") or "")
    if not server.startswith(("https://", "http://")):
        raise KubeconfigError(f"{path}: the server of context {chosen!r} is {server!r}, expected an https:// address.")
    _refuse_unsupported(cluster, user, chosen, path)
    token_file = user.get("tokenFile")
    return Access(
        server=server,
        ca=_bytes(cluster, "certificate-authority", path),
        token=str(user.get("token") or ""),
        client_cert=_bytes(user, "client-certificate", path),
        client_key=_bytes(user, "client-key", path),
        namespace=str(about.get("namespace") or "default"),
        context=chosen,
        # As kubectl does: a token in the file itself wins over a file that is named.
        token_file=path.parent / token_file if token_file and not user.get("token") else None,
        verify=not cluster.get("insecure-skip-tls-verify"),
        server_name=str(cluster.get("tls-server-name") or ""),
        # As kubectl does: a token that is there wins over a program that would have to be asked for one.
        plugin=_plugin(user["exec"], cluster, chosen, path) if user.get("exec") and not user.get("token") else None,
    )


def in_cluster(environment: Mapping[str, str], account: Path = ACCOUNT) -> Access | None:
    """The access of the pod we run in, or None outside of one."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
    if not host or not port or not (account / "token").exists():
        return None
    namespace = account / "namespace"
    return Access(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        ca=(account / "ca.crt").read_bytes(),
        token_file=account / "token",
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
        context="in-cluster",
    )


def transport(access: Access, *, timeouts: "Timeouts | None" = None) -> Transport:
    """Raises KubeconfigError when certificates or keys cannot be used."""
    from trainmaster.kube.credentials import Credentials, PluginTransport
    from trainmaster.kube.http import HttpTransport

    identity = _identity(access)

    def connect(certificate: ClientCertificate | None) -> Transport:
        return HttpTransport(
            access.server, token=access.token, token_file=access.token_file, ca=access.ca,
            client_cert=certificate or identity, verify=access.verify, server_name=access.server_name,
            timeouts=timeouts,
        )

    try:
        plain = connect(None)
    except ValueError as error:
        raise KubeconfigError(f"context {access.context!r}: {error}") from error
    return plain if access.plugin is None else PluginTransport(Credentials(access.plugin), connect)


def blocking(access: Access, *, patience: float | None = None) -> "BlockingTransport":
    """The same for programs without an event loop; `patience` is for an answer, in seconds."""
    from trainmaster.kube.blocking import READ, BlockingTransport, from_program

    credential = None
    if (plugin := access.plugin) is not None:
        import os

        from trainmaster.kube.credentials import asked

        credential = from_program(lambda: asked(plugin, os.environ))
    try:
        return BlockingTransport(
            access.server, token=access.token, token_file=access.token_file, ca=access.ca,
            client_cert=_identity(access), verify=access.verify, server_name=access.server_name, credential=credential,
            patience=patience or READ,
        )
    except ValueError as error:
        raise KubeconfigError(f"context {access.context!r}: {error}") from error


def document(server: str, ca_pem: bytes, token: str) -> Object:
    """A kubeconfig of our own, for kubectl and everybody else."""
    cluster = {"server": server, "certificate-authority-data": base64.b64encode(ca_pem).decode()}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "preferences": {},
        "clusters": [{"name": NAME, "cluster": cluster}],
        "users": [{"name": NAME, "user": {"token": token}}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME, "namespace": "default"}}],
        "current-context": NAME,
    }


def _identity(access: Access) -> ClientCertificate | None:
    if not access.client_cert or not access.client_key:
        return None
    return ClientCertificate(access.client_cert, access.client_key)


def _parsed(path: Path) -> Object:
    try:
        # CSafeLoader is the safe loader in C.
        found = yaml.load(path.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    except OSError as error:
        raise KubeconfigError(f"{path}: {error.strerror}. Is the cluster up, and is this the right file?") from error
    except yaml.YAMLError as error:
        # The text of a YAML error quotes the file, and this one holds secrets.
        where = getattr(error, "problem_mark", None)
        line = f" (line {where.line + 1})" if where else ""
        raise KubeconfigError(f"{path}: not valid YAML{line}.") from None
    if not isinstance(found, dict):
        raise KubeconfigError(f"{path}: not a kubeconfig: expected a mapping with clusters, users and contexts.")
    return found


def _named(document: Object, section: str, part: str, name: str, path: Path) -> dict[str, Any]:
    entries = [entry for entry in document.get(section) or () if isinstance(entry, dict)]
    for entry in entries:
        if entry.get("name") == name:
            found = entry.get(part) or {}
            if isinstance(found, dict):
                return found
    known = ", ".join(sorted(str(entry.get("name")) for entry in entries)) or "none"
    raise KubeconfigError(f"{path}: no entry {name!r} under {section} (found: {known}).")


def _bytes(section: Mapping[str, Any], name: str, path: Path) -> bytes | None:
    """`name-data` (base64) wins over the file that `name` gives, which is relative to the kubeconfig."""
    if data := section.get(f"{name}-data"):
        try:
            return base64.b64decode(str(data), validate=True)
        except binascii.Error:
            raise KubeconfigError(f"{path}: {name}-data is not base64.") from None
    if not (file := section.get(name)):
        return None
    try:
        return (path.parent / str(file)).read_bytes()
    except OSError as error:
        raise KubeconfigError(f"{path}: {name} {file}: {error.strerror}.") from error


def _plugin(given: Any, cluster: Mapping[str, Any], context: str, path: Path) -> "Plugin":
    """The program that `exec` names."""
    from trainmaster.kube.credentials import VERSIONS, Plugin

    where = f"{path}: exec of context {context!r}"
    if not isinstance(given, dict) or not given.get("command"):
        raise KubeconfigError(f"{where}: no command. Name the program that prints an ExecCredential.")
    version, mode = str(given.get("apiVersion") or ""), given.get("interactiveMode")
    if version not in VERSIONS:
        raise KubeconfigError(f"{where}: apiVersion is {version!r}, expected {' or '.join(VERSIONS)}.")
    if mode is None and version == VERSIONS[0]:
        raise KubeconfigError(f"{where}: interactiveMode is missing, which {version} asks for. Set it to Never.")
    if mode not in (None, "Never", "IfAvailable"):
        raise KubeconfigError(
            f"{where}: interactiveMode is {mode!r}. Programs are started without a terminal: expected Never or "
            "IfAvailable."
        )
    command, wanted = str(given["command"]), given.get("env") or ()
    if not all(isinstance(each, dict) and each.get("name") for each in wanted):
        raise KubeconfigError(f"{where}: env is not a list of names and values.")
    return Plugin(
        # A name is looked for in PATH; a path that is not whole begins beside the kubeconfig.
        command=str(path.parent / command) if "/" in command else command,
        args=tuple(str(each) for each in given.get("args") or ()),
        environment=tuple((str(each["name"]), str(each.get("value") or "")) for each in wanted),
        api_version=version,
        hint=str(given.get("installHint") or ""),
        cluster=_told_of(cluster, path) if given.get("provideClusterInfo") else None,
    )


def _told_of(cluster: Mapping[str, Any], path: Path) -> Object:
    """What a program may know about the cluster it is asked for."""
    from trainmaster.kube.credentials import GROUP

    told: Object = {
        name: cluster[name] for name in ("server", "tls-server-name", "insecure-skip-tls-verify") if cluster.get(name)
    }
    if ca := _bytes(cluster, "certificate-authority", path):
        told["certificate-authority-data"] = base64.b64encode(ca).decode()
    for extension in cluster.get("extensions") or ():
        if extension.get("name") == f"{GROUP}/exec":
            told["config"] = extension.get("extension")
    return told


def _refuse_unsupported(cluster: Mapping[str, Any], user: Mapping[str, Any], context: str, path: Path) -> None:
    for section, name, instead in (
        (user, "auth-provider", "Use a token, a tokenFile or a client certificate."),
        (user, "username", "Kubernetes took passwords until 1.18. Use a token or a client certificate."),
        (cluster, "proxy-url", "Name a server that can be reached directly."),
    ):
        if section.get(name):
            raise KubeconfigError(f"{path}: context {context!r} uses {name!r}, which is not supported. {instead}")
