"""Talking to any Kubernetes API: HTTP and objects, no jobs.

May import `api` only. Usable on its own, against a kube-apiserver and against the embedded one.
"""
