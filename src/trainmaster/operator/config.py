"""The operator's settings, in one place."""

from dataclasses import dataclass

from trainmaster.frameworks.framework import ANYWHERE, Site


@dataclass(frozen=True, slots=True)
class Settings:
    """What can be chosen. The defaults are for a cluster that the operator has to itself."""

    namespace: str = ""        # watch only this one; all if empty
    kinds: tuple[str, ...] = ()  # run only these; all we know if empty
    workers: int = 8           # jobs of one kind that are worked on at the same time
    at_once: int = 16          # requests for one job at the same time: 1,000 replicas must not open 1,000 connections
    # Seconds to finish what is under way when asked to stop: less than the 10 that a Deployment gives.
    grace: float = 8.0
    site: Site = ANYWHERE


DEFAULTS = Settings()
