"""What people type every day, with the kubectl of this machine and an old one.

The rows of a table share one namespace of one server, in their order: a day, not a list of unit tests. What takes
controllers (rollouts, waiting, events) has them at work; the last days are in words that only newer kubectls know.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from tests.conformance.conftest import Kubectl

TIMES = 100      # that a line is typed, of what must be said at some time
AT_WORK = pytest.mark.usefixtures("at_work")
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: 'nginx:1', resources: {requests: {cpu: 10m}}}]}
"""
MAPS = """
apiVersion: v1
kind: ConfigMap
metadata: {name: a, labels: {team: red}}
data: {k: v}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, labels: {team: blue}}
data: {k: w}
"""

NEWER = DEPLOYMENT.replace("nginx:1", "nginx:2")
BUDGET = """
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 2, selector: {matchLabels: {app: web}}}
"""


@dataclass(frozen=True, slots=True)
class Typed:
    """A line, what is piped into it, and what must be in its output; `code` 1 for what must be refused.

    With `until` somebody types it again and again, because what is to be said comes when a controller gets to it.
    """

    line: str
    said: str = ""
    given: str = ""
    code: int = 0
    until: bool = False


async def lived(kubectl: Kubectl, day: list[Typed]) -> None:
    for typed in day:
        for _ in range(TIMES if typed.until else 1):
            done = await kubectl(*typed.line.split(), given=typed.given)
            told = f"{done.out}{done.err}"
            if right := done.code == typed.code and bool(re.search(typed.said, told, re.DOTALL)):
                break
        assert right, f"kubectl {typed.line} ended with {done.code}:\n{told}"


@pytest.mark.parametrize("day", [
    pytest.param([
        Typed("create -f -", "configmap/a created", MAPS),
        Typed("get cm -o name", "configmap/a\nconfigmap/b"),
        Typed("get cm a -o go-template={{.data.k}}", "^v$"),
        Typed("get cm -o custom-columns=N:.metadata.name,K:.data.k --no-headers", r"a\s+v\nb\s+w"),
        Typed("get cm -o jsonpath={.items[*].data.k}", "^v w$"),
        Typed("get cm --show-labels", "team=red"),
        Typed("get cm -L team", r"TEAM\na\s.*red"),
        Typed("get cm --sort-by={.data.k} --no-headers", r"^a\s.*b\s"),
        Typed("get cm --field-selector=metadata.name=b -o name", "^configmap/b\n$"),
        Typed("get cm -l team!=red,team -o name", "^configmap/b\n$"),
        Typed("get cm nothing --ignore-not-found", "^$"),
        Typed("get cm/a cm/b -o name", "configmap/a\nconfigmap/b"),
        Typed("get cm,secrets -A", "kube-system|configmap/a"),
        Typed("get --raw /api/v1/namespaces/default/configmaps/a", '"k":"v"'),
        Typed("describe cm a", r"Name:\s+a\n.*Data\n====\nk:"),
        Typed("get nothings", "the server doesn't have a resource type", code=1),
    ], id="looking"),
    pytest.param([
        Typed("apply -f -", "deployment.apps/web created", DEPLOYMENT),
        Typed("apply -f -", "unchanged", DEPLOYMENT),
        Typed("diff -f -", r"\+\s+replicas: 3", DEPLOYMENT.replace("replicas: 2", "replicas: 3"), 1),
        Typed("apply -f - --dry-run=server", "configured", DEPLOYMENT.replace("replicas: 2", "replicas: 3")),
        Typed("apply view-last-applied deployment web", "replicas: 2"),
        Typed("scale deployment web --replicas=4", "scaled"),
        Typed("scale deployment web --current-replicas=9 --replicas=1", "Expected replicas to be 9, was 4", code=1),
        Typed("set image deployment/web web=nginx:2", "image updated"),
        Typed("set env deployment/web A=b", "env updated"),
        Typed("set resources deployment/web --limits=cpu=1", "resource requirements updated"),
        Typed("rollout pause deployment/web", "paused"),
        Typed("rollout resume deployment/web", "resumed"),
        Typed("get deployment web -o jsonpath={.spec.replicas}{.spec.template.spec.containers[0].image}", "^4nginx:2$"),
        Typed("get deploy", r"NAME\s+READY\s+UP-TO-DATE\s+AVAILABLE\s+AGE\nweb\s+0/4"),
        Typed("describe deployment web", r"Replicas:\s+4 desired"),
        Typed("expose deployment web --port=80", "service/web exposed"),
        Typed("autoscale deployment web --max=5", "autoscaled"),
        Typed("get hpa web", "Deployment/web"),
        Typed("delete deployment,service,hpa web", 'deployment.apps "web" deleted'),
    ], id="running something"),
    pytest.param([
        Typed("create -f -", "created", MAPS),
        Typed("label cm a team=green", "overwrite is false", code=1),
        Typed("label cm a team=green --overwrite", "labeled"),
        Typed("label cm --all seen=yes", "configmap/b labeled"),
        Typed("label cm a seen-", "label"),
        Typed("annotate cm a note=x", "annotated"),
        Typed("annotate cm a note-", "annotated"),
        Typed("patch cm a -p {\"data\":{\"k\":\"new\"}}", "patched"),
        Typed("patch cm a --type=json -p [{\"op\":\"test\",\"path\":\"/data/k\",\"value\":\"old\"}]", code=1),
        Typed("replace -f -", "configmap/a replaced", MAPS.partition("---")[0]),
        Typed("replace --force -f -", "configmap/b replaced", MAPS.partition("---")[2]),
        Typed("get cm a -o jsonpath={.metadata.labels}", '^{"team":"red"}$'),
        Typed("wait --for=condition=Ready cm/a --timeout=1s", "timed out", code=1),
    ], id="changing things"),
    pytest.param([
        Typed("auth can-i create pods", "^yes"),
        Typed("auth can-i get pods --as=ann", "^no", code=1),
        Typed("create rolebinding ann --clusterrole=view --user=ann", "created"),
        Typed("auth can-i list pods --as=ann", "^yes"),
        Typed("auth can-i list secrets --as=ann", "^no", code=1),
        Typed("auth can-i get /metrics --as=ann", "^no", code=1),
        Typed("auth can-i --list --as=ann", "selfsubjectaccessreviews.authorization.k8s.io.*pods/log"),
        Typed("get secrets --as=ann", 'User "ann" cannot list resource "secrets" in API group ""', code=1),
        Typed("get pods --as=ann --as-group=x", "No resources found"),
    ], id="asking what one may do"),
    pytest.param([
        Typed("create deployment d --image=busybox", "deployment.apps/d created"),
        Typed("create job j --image=busybox", "job.batch/j created"),
        Typed("create cronjob c --image=busybox --schedule=*/5", "", code=1),
        Typed("create quota q --hard=pods=5", "resourcequota/q created"),
        Typed("create role r --verb=get --resource=pods", "role.rbac.authorization.k8s.io/r created"),
        Typed("create rolebinding rb --role=r --user=u", "rolebinding.rbac.authorization.k8s.io/rb created"),
        Typed("create clusterrole cr --verb=get --resource=pods", "clusterrole.rbac.authorization.k8s.io/cr created"),
        Typed("create priorityclass p --value=7", "priorityclass.scheduling.k8s.io/p created"),
        Typed("create service nodeport np --tcp=80", "service/np created"),
        Typed("create secret docker-registry reg --docker-server=x --docker-username=u --docker-password=p", "created"),
        Typed("create configmap dry --dry-run=server", "dry run"),
        Typed("get cm dry", "not found", code=1),
        Typed("run p --image=busybox --restart=Never", "pod/p created"),
        Typed("get quota,role,rolebinding,job,deploy,pod -o name", "resourcequota/q"),
    ], id="making things by kind"),
    pytest.param([
        Typed("create -f -", "created", MAPS),
        Typed("delete cm -l team=red", 'configmap "a" deleted'),
        Typed("delete cm nothing --ignore-not-found", "^$"),
        Typed("delete cm b --dry-run=server", "deleted"),
        Typed("delete cm/b", 'configmap "b" deleted'),
        Typed("create -f -", "created", MAPS),
        Typed("delete -f -", 'configmap "b" deleted', MAPS),
        Typed("create -f -", "created", MAPS),
        Typed("delete cm a --cascade=orphan --wait=false", 'configmap "a" deleted'),
        Typed("delete cm --field-selector=metadata.name=b", 'configmap "b" deleted'),
        Typed("create namespace gone", "created"),
        Typed("run p --image=busybox -n gone", "created"),
        Typed("delete pod p --now -n gone", "deleted"),
        Typed("delete pods --all -n gone", "No resources found"),
    ], id="taking things away"),
    pytest.param([
        Typed("api-resources --api-group=apps -o name", "deployments.apps"),
        Typed("api-resources --namespaced=false", r"namespaces\s+ns\s+v1\s+false\s+Namespace"),
        Typed("api-versions", "apps/v1\n"),
        Typed("cluster-info", "is running at"),
        Typed("version", "Server Version"),
        Typed("explain deployment.spec.strategy --recursive", "rollingUpdate"),
        Typed("explain pod.metadata", "Standard|metadata"),
        Typed("explain nothing", "", code=1),
        Typed("get events", "No resources found|LAST SEEN"),
    ], id="asking about the server"),
])
async def test_a_day(kubectl: Kubectl, day: list[Typed]) -> None:
    await lived(kubectl, day)


async def test_edit_with_an_editor(kubectl: Kubectl, tmp_path: Path) -> None:
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\nsed -i "s/k: v/k: edited/" "$1"\n')
    editor.chmod(0o755)
    await kubectl.output("create", "-f", "-", given=MAPS)
    said = await kubectl.output("edit", "cm", "a", editor=str(editor))

    assert "configmap/a edited\n" == said
    assert {"k": "edited"} == json.loads(await kubectl.output("get", "cm", "a", "-o", "json"))["data"]


async def test_apply_on_the_server_side(kubectl: Kubectl) -> None:
    first, wanted = MAPS.partition("---")[0], "serverside-applied"
    assert f"configmap/a {wanted}\n" == await kubectl.output("apply", "--server-side", "-f", "-", given=first)
    taking, changed = ("apply", "--server-side", "--field-manager=other", "-f", "-"), first.replace("k: v", "k: x")
    other = await kubectl(*taking, given=changed)
    assert 1 == other.code
    assert "conflict" in other.err
    forced = await kubectl.output(*taking, "--force-conflicts", given=changed)
    assert f"configmap/a {wanted}\n" == forced
    owners = yaml.safe_load(await kubectl.output("get", "cm", "a", "-o", "yaml", *kubectl.all_fields))

    assert {"kubectl", "other"} == {each["manager"] for each in owners["metadata"]["managedFields"]}


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
        Typed("get pods -o name", "pod/once-", until=True),
        Typed("delete job once --cascade=orphan", "deleted"),
        Typed("get pods -o name", "pod/once-"),
        Typed("delete pods --all --wait=true --timeout=60s", "deleted"),
        Typed("get pods", "No resources found"),
    ], id="jobs and orphans"),
])
@AT_WORK
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
        Typed("events --for deployment/web", r"LAST SEEN\s+TYPE\s+REASON\s+OBJECT\s+MESSAGE.*ScalingReplicaSet",
              until=True),
        Typed("events --types=Normal", "SuccessfulCreate", until=True),
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
@AT_WORK
async def test_a_day_of_the_last_years(kubectl: Kubectl, day: list[Typed]) -> None:
    if kubectl.old:
        pytest.skip("kubectl 1.20 does not know these words")
    await lived(kubectl, day)


@AT_WORK
async def test_an_edit_that_is_refused_says_why_and_keeps_the_rest(kubectl: Kubectl, tmp_path: Path) -> None:
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\ncp "$1" "$HOME/shown"\nsed -i "s/replicas: 2/replicas: -2/" "$1"\n')
    editor.chmod(0o755)
    await kubectl.output("create", "-f", "-", given=DEPLOYMENT)
    done = await kubectl("edit", "deployment", "web", editor=str(editor))

    shown = (tmp_path / "shown").read_text()
    assert (1, True) == (done.code, 'deployments.apps "web" is invalid' in done.err)
    assert "# * spec.replicas: Invalid value: -2: must be greater than or equal to 0" in shown
