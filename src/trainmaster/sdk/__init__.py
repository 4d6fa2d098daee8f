"""For training code, notebooks and the command line: submit a job, follow it, know how it ended.

Speaks the Kubernetes API only (`kube`, `runtime`); knows neither the operator nor the embedded cluster.
"""
