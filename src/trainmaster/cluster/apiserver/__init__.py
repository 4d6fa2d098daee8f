"""The Kubernetes API over HTTP, on top of the store. The only package that writes to it."""
