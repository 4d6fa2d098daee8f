"""One module per command, each loaded only when it is used. Commands are thin."""
