"""One small module per framework: roles, port, rendezvous, outcome. Pure; imports `api` only."""
