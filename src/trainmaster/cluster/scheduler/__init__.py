"""Which pod goes to which node: `decide` is pure, `loop` is its shell."""
