"""A job says how far it is, in Kubeflow Trainer's words, from inside of its pod; another is read."""

import json
from typing import Any

import pytest
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
    assert (75.0, "report", ["eval_loss"]) == progress(person, "reports", (75.0, "report"))
    assert (100.0, "log", ["loss"]) == progress(person, "prints", (100.0, "log"))
    assert "75 %" in person.trainmaster("describe", "reports").stdout


TQDM = """
import time
from tqdm import tqdm
bar = tqdm(range(40))
for step in bar:
    bar.set_postfix(loss=2.0 / (step + 1))
    time.sleep(0.1)
"""
KERAS = """
import numpy, time
import tensorflow as tf
x = numpy.random.rand(512, 4)
model = tf.keras.Sequential([tf.keras.layers.Dense(8), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(x, x.sum(1), epochs=4, batch_size=8, OPTIONS)
time.sleep(3)
"""
# The class that Trainer uses, told what Trainer tells it. Without torch, which the callback does not need.
TRANSFORMERS = """
from types import SimpleNamespace
from transformers.integrations.integration_utils import KubeflowCallback
callback = KubeflowCallback()
callback._MIN_UPDATE_INTERVAL = 0.0
state = SimpleNamespace(is_world_process_zero=True, max_steps=10, global_step=0, epoch=0.0)
callback.on_train_begin(None, state, None)
for state.global_step in range(1, 11):
    callback.on_log(None, state, None, logs={"loss": 2.0 / state.global_step})
    callback.on_step_end(None, state, None)
callback.on_train_end(None, state, None)
"""
BOARD = "verbose=0, callbacks=[tf.keras.callbacks.TensorBoard('logs')]"


@pytest.mark.frameworks
@pytest.mark.parametrize(("name", "script", "packages", "expected", "metric"), [
    pytest.param("bar", TQDM, "tqdm==4.70.1", (100.0, "log"), "loss", id="tqdm's bar"),
    pytest.param("fit", KERAS.replace("OPTIONS", ""), "", (100.0, "log"), "loss", id="Keras's lines"),
    pytest.param("board", KERAS.replace("OPTIONS", BOARD), "", (None, "tensorboard"), "epoch_loss",
                 id="files that TensorBoard's callback writes"),
    pytest.param("callback", TRANSFORMERS, "transformers==5.22.2", (100.0, "report"), "loss", marks=pytest.mark.full,
                 id="Transformers' own callback, unchanged"),
])
def test_the_real_packages_are_understood(trainer: Person, name: str, script: str, packages: str,
                                          expected: tuple[float | None, str], metric: str) -> None:
    folder = trainer.folder(name, {f"{name}.py": script, "needs.txt": packages})
    needs = ("--requirements", str(folder / "needs.txt"), "--framework", "python") if packages else ()

    done = trainer.trainmaster("run", str(folder / f"{name}.py"), *needs, timeout=900)

    assert 0 == done.returncode, done.stderr
    percent, source, metrics = progress(trainer, name, expected)
    assert expected == (percent, source)
    assert metric in metrics


def progress(person: Person, job: str, expected: tuple[float | None, str]) -> tuple[float | None, str, list[str]]:
    """What the job carries as soon as it is what is expected, since the node looks every two seconds; else the last."""
    found: dict[str, Any] = {}
    for _ in range(100):
        about = json.loads(person.trainmaster("describe", job, "-o", "json").stdout)["metadata"]
        found = json.loads(about.get("annotations", {}).get("trainmaster.dev/progress") or "{}")
        if expected == (found.get("percent"), found.get("source")):
            break
    assert found, f"{job} never said how far it is"
    return found.get("percent"), found["source"], sorted(found["metrics"])
