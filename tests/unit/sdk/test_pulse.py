"""Silent and idle is hung; silent alone is nothing that we know."""

import pytest

from trainmaster.sdk.pulse import Pulse, hangs, told


@pytest.mark.parametrize(("pulses", "hung", "said"), [
    pytest.param([Pulse("worker-0", 600, 0.0), Pulse("worker-1", 700, 0.01)], True,
                 ["nothing was printed for 10 min; worker-0 was the last to say something"], id="silent and idle"),
    pytest.param([Pulse("worker-0", 600, 3.9), Pulse("ps-0", 700, 0.0)], False,
                 ["nothing was printed for 10 min; worker-0 was the last to say something",
                  "but it computes: 3.9 CPUs are in use"], id="silent, but one computes"),
    pytest.param([Pulse("worker-0", 600)], False,
                 ["nothing was printed for 10 min; worker-0 was the last to say something",
                  "whether it computes is not known: the cluster has no figures of CPU use for it"],
                 id="silent, and nobody knows more"),
    pytest.param([Pulse("worker-0", 3, 0.0), Pulse("ps-0", 700, 0.0)], False, [], id="one has just spoken"),
    pytest.param([Pulse("worker-0", 45, 0.0)], False,
                 ["worker-0 printed nothing for 45 s; a hang is suspected after 5 min (--quiet says otherwise)"],
                 id="silent for a while: when it will be suspected is said"),
    pytest.param([], False, [], id="nobody runs"),
])
def test_whether_it_hangs(pulses: list[Pulse], hung: bool, said: list[str]) -> None:
    assert (hung, said) == (hangs(pulses), list(told(pulses)))
