"""What to do about a device that a job waits for and no node has. Pure.

A machine has the GPUs that its cluster was told of; that somebody must tell it is in no message of the scheduler, which
knows nodes and not how they came to be.
"""

import re

# Words of the scheduler's reason. Devices have the name of their maker before a slash; of the rest there is some.
_NEVER = "would not fit even if nothing else ran"
_DEVICE = re.compile(r"\d (\S+/[\w.-]+) short")


def remedy(why: str) -> str:
    """A sentence to go with the scheduler's reason, "" if there is nothing to say."""
    device = _DEVICE.search(why)
    if device is None or _NEVER not in why:
        return ""
    return (f"No node offers as much {device[1]}. The embedded cluster offers what it is told: `trainmaster down`, "
            f"then `trainmaster up --resource {device[1]}=N`.")
