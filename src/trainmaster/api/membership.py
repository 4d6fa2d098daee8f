"""The labels by which pods and services say of which training job they are, and which replica: Kubeflow's words.

Whoever makes them and whoever looks for them must mean the same, so each word stands here and nowhere else.
"""

OPERATOR_NAME = "training.kubeflow.org/operator-name"
JOB_NAME = "training.kubeflow.org/job-name"
ROLE = "training.kubeflow.org/replica-type"
INDEX = "training.kubeflow.org/replica-index"
JOB_ROLE = "training.kubeflow.org/job-role"       # "master" on the replica that leads
