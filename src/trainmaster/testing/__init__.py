"""Public test kit: builders, virtual time, faults, the embedded cluster as a fixture."""
