"""Nodes that run nothing: what a big cluster would decide, tried on a laptop. Talks to the API like any kubelet."""
