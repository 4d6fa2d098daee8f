"""The imperative shell around `engine`: observe, plan, apply, write status. Knows only the Kubernetes API."""
