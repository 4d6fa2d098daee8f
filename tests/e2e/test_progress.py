"""A job says how far it is, in Kubeflow Trainer's words, from inside of its pod; another is read."""

import json

from tests.e2e.person import Person

# As clients of the protocol do it, with the standard library alone.
REPORTS = """
import json, os, ssl, urllib.request
context = ssl.create_default_context(cafile=os.environ["KUBEFLOW_TRAINER_SERVER_CA_CERT"])
token = open(os.environ["KUBEFLOW_TRAINER_SERVER_TOKEN"]).read()
body = {"trainerStatus": {"progressPercentage": 75, "estimatedRemainingSeconds": 5,
                          "metrics": [{"name": "eval_loss", "value": "0.25"}],
                          "lastUpdatedTime": "2026-01-01T00:00:00Z"}}
request = urllib.request.Request(os.environ["KUBEFLOW_TRAINER_SERVER_URL"], data=json.dumps(body).encode(),
                                 headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
print("answered", urllib.request.urlopen(request, context=context, timeout=30).status, flush=True)
print("step 1/100 loss 3.0", flush=True)
"""
PRINTS = "for step in range(101): print(f'step {step}/100 loss {100 - step}', flush=True)\n"


def test_reports_and_lines_become_progress(person: Person) -> None:
    folder = person.folder("work", {"reports.py": REPORTS, "prints.py": PRINTS})

    reported = person.trainmaster("run", str(folder / "reports.py"))
    printed = person.trainmaster("run", str(folder / "prints.py"))
    assert (0, 0) == (reported.returncode, printed.returncode), reported.stderr + printed.stderr

    assert "[worker-0] answered 200" in reported.stdout
    assert (75.0, "report", ["eval_loss"]) == progress(person, "reports")
    assert (100.0, "log", ["loss"]) == progress(person, "prints")
    assert "75 %" in person.trainmaster("describe", "reports").stdout


def progress(person: Person, job: str) -> tuple[float, str, list[str]]:
    """What the job carries; the node looks every two seconds."""
    for _ in range(100):
        about = json.loads(person.trainmaster("describe", job, "-o", "json").stdout)["metadata"]
        if said := about.get("annotations", {}).get("trainmaster.dev/progress"):
            found = json.loads(said)
            return found["percent"], found["source"], sorted(found["metrics"])
    raise AssertionError(f"{job} never said how far it is")
