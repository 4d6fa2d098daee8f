"""What the node agent is told by its environment."""

import pytest

from trainmaster.cluster.kubelet.output import MOST_BYTES, MOST_FILES
from trainmaster.local.node import log_limits


@pytest.mark.parametrize(("expected", "environment"), [
    pytest.param((MOST_BYTES, MOST_FILES), {}, id="nothing said: as the kubelet"),
    pytest.param((50 * 1024 * 1024, 2), {"TRAINMASTER_LOG_SIZE": "50Mi", "TRAINMASTER_LOG_FILES": "2"}, id="both"),
    pytest.param((MOST_BYTES, 0), {"TRAINMASTER_LOG_FILES": "0"}, id="without a bound"),
    pytest.param((MOST_BYTES, MOST_FILES), {"TRAINMASTER_LOG_SIZE": "large"}, id="no size"),
    pytest.param((MOST_BYTES, MOST_FILES), {"TRAINMASTER_LOG_SIZE": "1"}, id="a size that no line fits in"),
    pytest.param((MOST_BYTES, MOST_FILES), {"TRAINMASTER_LOG_FILES": "-1"}, id="less than none"),
    pytest.param((MOST_BYTES, MOST_FILES), {"TRAINMASTER_LOG_FILES": "few"}, id="no number"),
])
def test_the_bounds_of_logs(expected: tuple[int, int], environment: dict[str, str]) -> None:
    assert expected == log_limits(environment)
