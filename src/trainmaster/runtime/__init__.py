"""What every controller needs: clock, local copies, work queue, worker loop, events.

Knows objects and keys, not jobs. May import `api` and `kube`.
"""
