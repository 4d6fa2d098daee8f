"""The operator's side of gang scheduling: the pod group of a job, and what its pods say about it.

Pure; imports `api` only. Placing the pods is a scheduler's business. What is agreed with it differs from scheduler to
scheduler and is a table here (`dialects`); everything else is the same for all.
"""
