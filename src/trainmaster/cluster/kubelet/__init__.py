"""The node: pods of this machine as sandboxes of Linux namespaces around ordinary processes.

`agent` watches the pods bound to this node; `sandbox` makes a pod's namespaces; `shim` is the init of one container.
"""
