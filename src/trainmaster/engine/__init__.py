"""The planner: what should happen to a job next, as a value. Pure; one policy per file, `plan.py` has their order."""
