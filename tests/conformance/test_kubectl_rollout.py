"""What takes controllers: rollouts, waiting, events; and what only kubectls of the last years can say."""

from pathlib import Path

import pytest
from tests.conformance.conftest import Kubectl
from tests.conformance.test_kubectl_daily import DEPLOYMENT, MAPS, Typed, lived

pytestmark = pytest.mark.usefixtures("at_work")

NEWER = DEPLOYMENT.replace("nginx:1", "nginx:2")
BUDGET = """
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 2, selector: {matchLabels: {app: web}}}
"""


@pytest.mark.parametrize("day", [
    pytest.param([
        Typed("apply -f -", "deployment.apps/web created", DEPLOYMENT),
        Typed("rollout status deployment/web --timeout=60s", "successfully rolled out"),
        Typed("wait --for=condition=Available deployment/web --timeout=60s", "condition met"),
        Typed("get deploy web", r"web\s+2/2\s+2\s+2"),
        Typed("diff -f -", r"\+.*image: nginx:2", NEWER, 1),
        Typed("apply -f -", "configured", NEWER),
        Typed("rollout status deployment/web --timeout=60s", "successfully rolled out"),
        Typed("rollout history deployment/web", r"REVISION.*1\s+<none>\n2\s+<none>"),
        Typed("rollout history deployment/web --revision=1", "nginx:1"),
        Typed("rollout undo deployment/web", "rolled back"),
        Typed("rollout status deployment/web --timeout=60s", "successfully rolled out"),
        Typed("get deployment web -o jsonpath={.spec.template.spec.containers[0].image}", "^nginx:1$"),
        Typed("rollout restart deployment/web", "restarted"),
        Typed("rollout status deployment/web --timeout=60s", "successfully rolled out"),
        Typed("get rs -l app=web", r"NAME\s+DESIRED\s+CURRENT\s+READY\s+AGE"),
        Typed("describe deployment web", r"NewReplicaSet:.*Events:.*ScalingReplicaSet"),
        Typed("scale deployment web --replicas=3 --timeout=60s", "scaled"),
        Typed("delete deployment web --cascade=foreground --timeout=60s", "deleted"),
        Typed("get pods,rs", "No resources found"),
    ], id="rolling out"),
    pytest.param([
        Typed("create job once --image=busybox", "created"),
        Typed("get jobs", r"once\s+(Running\s+)?0/1"),
        Typed("delete job once --cascade=orphan", "deleted"),
        Typed("get pods -o name", "pod/once-"),
        Typed("delete pods --all --wait=true --timeout=60s", "deleted"),
        Typed("get pods", "No resources found"),
    ], id="jobs and orphans"),
])
async def test_a_day_with_controllers(kubectl: Kubectl, day: list[Typed]) -> None:
    await lived(kubectl, day)


@pytest.mark.parametrize("day", [
    pytest.param([
        Typed("auth whoami", r"Username\s+admin\nGroups\s+\[system:masters system:authenticated\]"),
        Typed("auth whoami --as=ann -o jsonpath={.status.userInfo.username}", "^ann$"),
        Typed("auth can-i --list", r"\*\.\*\s+\[\]\s+\[\]\s+\[\*\]"),
        Typed("create token default --duration=10m", r"^ey[\w-]+\.[\w-]+\.[\w-]+$"),
        Typed("create role r --verb=get --resource=pods", "created"),
        Typed("auth reconcile -f - --dry-run=client", "", "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\n"
              "metadata: {name: q}\nrules: []\n"),
    ], id="who am I"),
    pytest.param([
        Typed("apply -f -", "created", DEPLOYMENT),
        Typed("wait --for=jsonpath={.status.readyReplicas}=2 deployment/web --timeout=60s", "condition met"),
        Typed("events --for deployment/web", r"LAST SEEN\s+TYPE\s+REASON\s+OBJECT\s+MESSAGE.*ScalingReplicaSet"),
        Typed("events --types=Normal", "SuccessfulCreate"),
        Typed("get events --sort-by=.metadata.creationTimestamp", "SuccessfulCreate"),
        Typed("get deployment web --subresource=scale -o jsonpath={.spec.replicas}", "^2$"),
        Typed("patch deployment web --subresource=scale --type=merge -p {\"spec\":{\"replicas\":1}}", "patched"),
        Typed("apply --server-side --force-conflicts -f -", "serverside-applied", DEPLOYMENT),
        Typed("diff --server-side --force-conflicts -f -", r"\+.*nginx:2", NEWER, 1),
        Typed("apply --server-side --dry-run=server --force-conflicts -f -", "server dry run", NEWER),
        Typed("apply -f - --prune -l team", "", MAPS),
        Typed("delete cm -l team=red --wait=false", "deleted"),
        Typed("create -f -", "created", BUDGET),
        Typed("wait --for=jsonpath={.status.currentHealthy}=2 pdb/web --timeout=60s", "condition met"),
        Typed("get pdb", r"web\s+2\s+N/A\s+0"),
    ], id="watching things happen"),
    pytest.param([
        Typed("create ingress i --rule=example.com/*=web:80", "ingress.networking.k8s.io/i created"),
        Typed("create poddisruptionbudget b --selector=app=x --min-available=1", "created"),
        Typed("create cronjob c --image=busybox --schedule=@daily", "cronjob.batch/c created"),
        Typed("create job now --from=cronjob/c", "job.batch/now created"),
        Typed("create service externalname e --external-name=example.com", "service/e created"),
        Typed("create clusterrolebinding crb --clusterrole=view --user=u", "created"),
        Typed("create secret tls t --cert=/nowhere --key=/nowhere", "", code=1),
        Typed("get ingress,pdb,cronjob,svc", "example.com"),
        Typed("explain cronjob.spec.schedule", "schedule"),
        Typed("api-resources --categories=all -o name", "pods"),
    ], id="making newer things by kind"),
])
async def test_a_day_of_the_last_years(kubectl: Kubectl, day: list[Typed]) -> None:
    if kubectl.old:
        pytest.skip("kubectl 1.20 does not know these words")
    await lived(kubectl, day)


async def test_an_edit_that_is_refused_says_why_and_keeps_the_rest(kubectl: Kubectl, tmp_path: Path) -> None:
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\ncp "$1" "$HOME/shown"\nsed -i "s/replicas: 2/replicas: -2/" "$1"\n')
    editor.chmod(0o755)
    await kubectl.output("create", "-f", "-", given=DEPLOYMENT)
    done = await kubectl("edit", "deployment", "web", editor=str(editor))

    shown = (tmp_path / "shown").read_text()
    assert (1, True) == (done.code, 'deployments.apps "web" is invalid' in done.err)
    assert "# * spec.replicas: Invalid value: -2: must be greater than or equal to 0" in shown
