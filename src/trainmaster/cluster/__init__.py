"""The embedded cluster: a small, honest Kubernetes for one machine.

`store` keeps objects and revisions; `apiserver` is the only one that touches it and speaks the Kubernetes API;
`scheduler`, `controllers`, `network` and `kubelet` are clients of that API like any other and import neither the server
nor each other (`kubelet` alone uses `network`). A cluster does not know training: nothing here may import `engine`,
`frameworks` or `operator`.
"""
