"""Who is shown what happens to a job while it is followed.

Apart from `follow`, which needs an event loop and all that hangs on it: whoever only shows need not load that.
"""

from collections.abc import Sequence
from typing import Protocol

from trainmaster.progress.curves import Curves
from trainmaster.sdk.replicas import Replica
from trainmaster.sdk.usage import Usage


class View(Protocol):
    wants_usage: bool      # whether it shows the use of CPU and memory: asking costs a request every few seconds

    def replica(self, replica: Replica) -> None: ...

    def gone(self, replica: Replica) -> None: ...

    def lines(self, replica: str, texts: Sequence[str]) -> None: ...

    def note(self, text: str) -> None: ...

    def progress(self, job: str, found: Curves) -> None: ...

    def used(self, replica: str, amounts: Usage) -> None: ...
