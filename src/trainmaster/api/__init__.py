"""What people write: types, defaults, validation and schema of every kind we know.

Pure: no input, no output, no clock. Imports nothing of ours; everybody may import it.
"""
