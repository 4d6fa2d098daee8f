"""What every launcher starts: says when it runs, and when it is about to end."""

import time

print("first line", time.time(), flush=True)
print("last line", time.time(), flush=True)
