"""What objects of a namespace use, and whether a quota has room for one more. Pure.

Two need the same answers: the API server, which charges a quota in the transaction that creates an object, and the
controller, which counts everything again when something went away. If they counted differently, a namespace would
fill up or leak; so neither has rules of its own.
"""
