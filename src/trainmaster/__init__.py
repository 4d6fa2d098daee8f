"""Trainmaster runs distributed training, on any Kubernetes or on one Linux machine.

The packages below are the architecture; `tests/test_architecture.py` holds the table of who may import whom.
"""

__version__ = "0.1.0"
