"""The controllers of the API itself: garbage collection, namespaces. Clients of the API, like any controller."""
