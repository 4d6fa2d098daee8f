"""Mistakes that people make in manifests, and the sentences they get; `mistakes.yaml` is the table.

A row changes one thing in a good manifest (`change`: what is there, what is written instead) or is a manifest of its
own (`manifest`). `says` are the lines of `trainmaster validate`, `apply` and `run`, which say the same before they make
anything; `notes` are those of `apply` and `run` about what is not there. FILE stands for the path, HERE for the
namespace.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

GOOD = """\
apiVersion: kubeflow.org/v1
kind: TFJob
metadata:
  name: mnist
spec:
  runPolicy:
    cleanPodPolicy: None
  tfReplicaSpecs:
    Worker:
      replicas: 2
      restartPolicy: OnFailure
      template:
        spec:
          containers:
          - name: tensorflow
            image: tensorflow/tensorflow:2.16.1
            command: [python, train.py]
            env:
            - name: EPOCHS
              value: "3"
            resources:
              limits:
                memory: 1Gi
            volumeMounts:
            - name: data
              mountPath: /data
          volumes:
          - name: data
            emptyDir: {}
"""


@dataclass(frozen=True, slots=True)
class Mistake:
    when: str
    text: str
    says: tuple[str, ...]


def mistakes() -> list[Mistake]:
    """What no cluster takes."""
    return [Mistake(row["mistake"], text_of(row), tuple(row["says"])) for row in _rows() if "says" in row]


def oversights() -> list[Mistake]:
    """What a cluster takes, and the job then waits: said by those who ask one."""
    return [Mistake(row["mistake"], text_of(row), tuple(row["notes"])) for row in _rows() if "notes" in row]


def _rows() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("mistakes.yaml").read_text())
    return found


def text_of(row: dict[str, Any]) -> str:
    if "manifest" in row:
        return str(row["manifest"])
    old, new = row["change"]
    assert GOOD.count(old) == 1, row
    return GOOD.replace(old, new)
