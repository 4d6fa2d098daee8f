"""How far a training is, and its curves: what jobs report, what their files and lines say, kept small. Pure."""
