"""Controllers that make pods from templates: ReplicaSet, ReplicationController, Deployment, StatefulSet, Job.

Each has pure modules that decide (what to make, what to delete, what the status says) and one small shell that acts.
All share one copy of the pods, and what each wrote itself is laid over it, so that nothing is made twice because a
watch is late. Nothing of this runs before the first object of such a kind is there.
"""
