"""What people said to `trainmaster up`, written down for as long as the cluster is not taken down.

A cluster that crashed, or whose machine did, is still the one that was asked for: the next `up` need not be told again,
and without its GPUs the jobs that it goes on with would never fit. So what is not said is what was said before, until
`down`. Rejected: to keep it over `down`, since then nobody could tell why a new cluster has four GPUs.

The port is not among it: the one of the last time is taken anyhow if it is free, and must not keep `up` from starting
if it is not. Nor is the number of nodes, which `local.nodes` writes down for the sake of pods that run on them.
"""

import msgspec
from msgspec.structs import replace

from trainmaster.local import files
from trainmaster.local.asked import VOLCANO, Asked
from trainmaster.local.home import Home

RECORD = "said.json"
SIMULATED = {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "8"}      # each simulated node, unless told otherwise


class Said(msgspec.Struct, frozen=True, omit_defaults=True):
    """None and nothing are what was not said."""

    port: int | None = None
    only_apiserver: bool | None = None
    gang_scheduler: str | None = None
    simulated_nodes: int | None = None
    simulated_offers: dict[str, str] | None = None
    preempt: bool | None = None
    reclaim: bool | None = None
    offered: dict[str, str] = {}        # by the machine, together: cpu, memory and other resources

    def over(self, before: "Said") -> "Said":
        """This, and what was said before where this says nothing."""
        here = {name: said for name in self.__struct_fields__ if (said := getattr(self, name)) is not None}
        return replace(before, **{**here, "port": self.port, "offered": {**before.offered, **self.offered}})

    def besides(self, newer: "Said") -> "Said":
        """What of this still counts after something newer was said."""
        overruled = {name: None for name in self.__struct_fields__ if getattr(newer, name) is not None}
        left = {name: amount for name, amount in self.offered.items() if name not in newer.offered}
        return replace(self, **{**overruled, "offered": left})

    def means(self) -> tuple[Asked, dict[str, str]]:
        """The same for two that differ only in what goes without saying."""
        return replace(self.asked(), port=0), self.offered

    def asked(self) -> Asked:
        """What the control plane has to know of it."""
        simulated = self.simulated_nodes or 0
        return Asked(self.port or 0, bool(self.only_apiserver), self.gang_scheduler or VOLCANO, simulated,
                     (self.simulated_offers or SIMULATED) if simulated else {}, bool(self.preempt), bool(self.reclaim))

    def options(self) -> str:
        """As it would be typed, but for the port; "" if nothing was said."""
        words = []
        for name, amount in self.offered.items():
            words += [f"--{_OWN[name]}", amount] if name in _OWN else ["--resource", f"{name}={amount}"]
        if self.only_apiserver:
            words += ["--only", "apiserver"]
        if self.gang_scheduler:
            words += ["--gang-scheduler-name", self.gang_scheduler]
        words += [word for word, given in (("--preempt", self.preempt), ("--reclaim", self.reclaim)) if given]
        if self.simulated_nodes:
            words += ["--fake-nodes", str(self.simulated_nodes)]
            if self.simulated_offers:
                words += ["--fake-node", ",".join(f"{name}={each}" for name, each in self.simulated_offers.items())]
        return " ".join(words)


_OWN = {"cpu": "cpus", "memory": "memory"}
NOTHING = Said()


def said_before(home: Home) -> Said:
    """What holds for a cluster that was not taken down. A record that cannot be read says nothing."""
    try:
        return msgspec.json.decode((home.run / RECORD).read_bytes(), type=Said)
    except (OSError, msgspec.DecodeError):
        return NOTHING


def remember(home: Home, said: Said) -> None:
    files.write(home.run / RECORD, msgspec.json.encode(replace(said, port=None)))
