"""What pods reach: the API server with their account's token, services by address, and nothing of the machine."""

import json

import pytest
from tests.e2e.person import Person

ASK_API = """
import json, os, ssl, urllib.request
token = open("/var/run/secrets/kubernetes.io/serviceaccount/token").read()
trust = ssl.create_default_context(cafile="/var/run/secrets/kubernetes.io/serviceaccount/ca.crt")
by_variables = f"{os.environ['KUBERNETES_SERVICE_HOST']}:{os.environ['KUBERNETES_SERVICE_PORT']}"
for host in ("kubernetes.default.svc", "kubernetes", by_variables):
    request = urllib.request.Request(f"https://{host}/api/v1/namespaces/default/pods",
                                     headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=20, context=trust) as answer:
        print([item["metadata"]["name"] for item in json.load(answer)["items"]])
"""
# Services lead to a pod a moment after it is ready.
PATIENT = """
import time, urllib.request
until = time.monotonic() + 100
while True:
    try:
        print(urllib.request.urlopen("http://ADDRESS", timeout=20).status)
        break
    except OSError:
        if time.monotonic() > until:
            raise
        time.sleep(0.1)
"""
SERVE = "import http.server as h; h.test(h.SimpleHTTPRequestHandler, port=8000)"


def pod(name: str, program: str, **container: object) -> str:
    made = {"name": "main", "image": "example.org/any:1", "command": ["python3", "-u", "-c", program], **container}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
                       "spec": {"restartPolicy": "Never", "containers": [made]}})


@pytest.mark.usefixtures("kubectl")
def test_pods_reach_the_api_server_and_services_by_their_addresses(person: Person) -> None:
    assert 0 == person.trainmaster("up").returncode
    person.kubectl("create", "clusterrolebinding", "see", "--clusterrole=view", "--serviceaccount=default:default")
    person.kubectl("create", "-f", "-", text=pod("asks", ASK_API))
    person.kubectl("create", "-f", "-", text=pod(
        "web", SERVE, readinessProbe={"tcpSocket": {"port": 8000}, "periodSeconds": 1}))
    person.kubectl("expose", "pod", "web", "--port=80", "--target-port=8000", "--type=NodePort")
    person.kubectl("wait", "--for=condition=Ready", "--timeout=110s", "pod/web")

    person.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=110s", "pod/asks")
    assert [True] * 3 == ["asks" in line for line in person.kubectl("logs", "asks").splitlines()]

    address = person.kubectl("get", "service", "web", "-o", "jsonpath={.spec.clusterIP}")
    person.kubectl("create", "-f", "-", text=pod("client", PATIENT.replace("ADDRESS", address)))
    person.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=110s", "pod/client")
    assert "200\n" == person.kubectl("logs", "client")

    port = person.kubectl("get", "service", "web", "-o", "jsonpath={.spec.ports[0].nodePort}")
    done = person.run("python3", "-c", PATIENT.replace("ADDRESS", f"127.0.0.1:{port}"))
    assert "200\n" == done.stdout, done.stderr
    assert 0 == person.trainmaster("down").returncode
