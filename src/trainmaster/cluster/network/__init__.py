"""Addresses and names inside the cluster's own network namespace."""
