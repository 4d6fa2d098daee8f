"""Which cluster is meant, and what to call it: the one order that every command and the SDK keep.

What was given, else KUBECONFIG, else the embedded cluster if it is up, else the account of the pod we run in, else
`~/.kube/config`. The last is never taken in silence: somebody whose embedded cluster is down must not delete a job of
the same name on another.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trainmaster.kube import kubeconfig
from trainmaster.kube.kubeconfig import Access, KubeconfigError
from trainmaster.sdk import embedded
from trainmaster.sdk.errors import NoCluster


@dataclass(frozen=True, slots=True)
class Reached:
    """How to get there, and what to tell the person about it."""

    access: Access
    called: str            # the cluster of context prod (https://10.0.0.1:6443)
    embedded: bool = False
    surprise: str = ""     # why it may not be the one that was meant


def reach(given: str | Path | None, context: str | None, environment: Mapping[str, str],
          account: Path = kubeconfig.ACCOUNT) -> Reached:
    """The cluster to talk to; `account` is where a pod finds its own.

    Raises NoCluster, or KubeconfigError for a file that cannot be used.
    """
    ours = embedded.kubeconfig(environment)
    named = str(given or environment.get("KUBECONFIG") or "")
    if named:
        return _in_file(_chosen(named, context), context, ours, embedded.server(environment))
    up = embedded.server(environment)
    if up is not None and context in (None, "", kubeconfig.NAME):
        return _in_file(ours, None, ours, up)
    if not context and (pod := kubeconfig.in_cluster(environment, account)) is not None:
        return Reached(pod, f"the cluster of this pod ({pod.server})")
    theirs = Path(environment.get("HOME") or Path.home(), ".kube", "config")
    if not theirs.exists() and context:
        raise NoCluster(f"No cluster has the context '{context}': there is no ~/.kube/config. That of the embedded one "
                        f"is {kubeconfig.NAME}; for others, name their file with --kubeconfig.")
    if not theirs.exists():
        raise NoCluster("No cluster: the embedded one is down, and there is no ~/.kube/config. Start it with "
                        "`trainmaster up`, or name another with --kubeconfig.")
    found = _in_file(theirs, context, ours, up)
    if context:
        return found
    return Reached(found.access, found.called, surprise=f"The embedded cluster is down; this is {found.called}, "
                   "by ~/.kube/config.")


def means_embedded(given: str | Path | None, context: str | None, environment: Mapping[str, str]) -> bool:
    """Whether the embedded cluster is the one to start: it is named, or no other is."""
    if named := str(given or environment.get("KUBECONFIG") or ""):
        return _chosen(named, context).resolve() == embedded.kubeconfig(environment).resolve()
    return context in (None, "", kubeconfig.NAME)


def _in_file(path: Path, context: str | None, ours: Path, up: str | None) -> Reached:
    is_ours = path.resolve() == ours.resolve()
    if is_ours and up is None:
        raise NoCluster("The embedded cluster is down. Start it with `trainmaster up`.")
    access = kubeconfig.load(path, context)
    if is_ours:
        return Reached(access, f"the embedded cluster ({access.server})", embedded=True)
    return Reached(access, f"the cluster of context {access.context} ({access.server})")


def _chosen(named: str, context: str | None) -> Path:
    """KUBECONFIG may be a list. kubectl joins the files; here the first that has the context is taken."""
    files = [Path(each).expanduser() for each in named.split(":") if each]
    there = [each for each in files if each.exists()]
    for path in there if len(there) > 1 else ():
        try:
            kubeconfig.load(path, context)
        except KubeconfigError:
            continue
        return path
    return (there or files)[0]
