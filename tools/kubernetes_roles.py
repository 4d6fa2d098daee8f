"""Writes the roles and bindings that every Kubernetes has from its start, as the embedded API server makes them.

    python tools/kubernetes_roles.py KUBECONFIG            writes kubernetes_roles.json of the API server
    python tools/kubernetes_roles.py KUBECONFIG --check    says whether that file is what the server has

They are facts of a release: clients, manuals and auditors know these names and what they allow. So they are read from a
kube-apiserver that nobody has changed, and not written down from memory.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

OUTPUT = Path(__file__).parents[1] / "src/trainmaster/cluster/apiserver/kubernetes_roles.json"
KINDS = ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
BOOTSTRAP = "kubernetes.io/bootstrapping"
EXIT_STALE = 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kubeconfig")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    found = text({kind: read(arguments.kubeconfig, kind) for kind in KINDS})
    if arguments.check:
        return 0 if OUTPUT.read_text() == found else EXIT_STALE
    OUTPUT.write_text(found)
    return 0


def read(kubeconfig: str, kind: str) -> list[dict[str, Any]]:
    command = ["kubectl", f"--kubeconfig={kubeconfig}", "get", "--raw", f"/apis/rbac.authorization.k8s.io/v1/{kind}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=60)
    return shipped(json.loads(done.stdout)["items"])


def shipped(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What every server has, without what it says of itself. Rules that are gathered from other roles stay out."""
    return [bare(item) for item in items if BOOTSTRAP in (item["metadata"].get("labels") or {})]


def bare(item: dict[str, Any]) -> dict[str, Any]:
    kept = ("name", "namespace", "labels", "annotations")
    meta = {field: item["metadata"][field] for field in kept if field in item["metadata"]}
    gathered = item.get("aggregationRule") is not None
    rest = {field: value for field, value in item.items()
            if field in ("aggregationRule", "subjects", "roleRef") or (field == "rules" and not gathered)}
    return {"metadata": meta, **rest}


def text(found: dict[str, list[dict[str, Any]]]) -> str:
    """One line per object, so that a change can be read."""
    blocks = []
    for kind, items in found.items():
        lines = ",\n".join(json.dumps(item, separators=(",", ":")) for item in items)
        blocks.append(f'"{kind}": [\n{lines}\n]')
    return "{\n" + ",\n".join(blocks) + "\n}\n"


if __name__ == "__main__":
    sys.exit(main())
