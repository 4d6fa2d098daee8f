"""What `trainmaster up` asks of the control plane, from one process to the other."""

import msgspec

VOLCANO, NONE = "volcano", "none"
GANG_SCHEDULERS = {VOLCANO: "volcano", "kube-batch": "kube-batch", "scheduler-plugins": "scheduler-plugins-scheduler",
                   "t9k": "t9k-scheduler", NONE: ""}


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    port: int = 0                               # 0: that of the last time, else any
    only_apiserver: bool = False                # no scheduler, no operator
    gang_scheduler: str = VOLCANO               # how jobs are kept whole, a key of GANG_SCHEDULERS
    simulated_nodes: int = 0
    simulated_offers: dict[str, str] = {}
    preempt: bool = False                       # gangs may push out less important ones of their queue
    reclaim: bool = False                       # queues may take back what they deserve

    def words(self) -> str:
        return msgspec.json.encode(self).decode()

    @classmethod
    def read(cls, words: str) -> "Asked":
        return msgspec.json.decode(words, type=cls)
