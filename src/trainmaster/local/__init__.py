"""Puts cluster and operator together on one machine: start, readiness, state directory, stop."""
