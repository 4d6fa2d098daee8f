"""What can go wrong with a job, as sentences. What goes wrong with a request is `kube.errors`."""

from collections.abc import Sequence


class SdkError(Exception):
    """Any of these; the message says what, where and what to do."""


class ManifestError(SdkError):
    """Something the user wrote cannot be used: which file, where, what to do."""


class NoCluster(SdkError):
    """There is no cluster to talk to."""


class NoJob(SdkError):
    """There is no job of that name, or several."""


class NoSuchKind(SdkError):
    """The cluster has no kind of that name."""


class NoReplica(SdkError):
    """The job has no such role or replica."""


class JobFailed(SdkError):
    """The job failed, so what was waited for will not come. `details` are the words of the post-mortem."""

    def __init__(self, message: str, details: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.details = tuple(details)


class CannotStart(SdkError):
    """A replica waits for something that cannot come: the job has to be corrected."""


class JobGone(SdkError):
    """The job was deleted before it ended."""


class TimedOut(SdkError):
    """What was waited for did not come in time."""


class NotPossible(SdkError):
    """The job is in a state, or of a kind, that does not allow it."""
