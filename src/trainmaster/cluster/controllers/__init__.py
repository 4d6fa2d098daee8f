"""The controllers of the API itself: garbage collection, namespaces, accounts, endpoints, the end of events.

Clients of the API, like any controller: they know nothing of the server but its API. `main.run` starts them all.
"""
