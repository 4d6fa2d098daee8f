"""Events as people read them: about what, how often, when last, and in which order."""

from datetime import UTC, datetime

import pytest

from trainmaster.api.meta import Object
from trainmaster.sdk.happenings import Happening, happening, in_order

NINE, TEN, ELEVEN = (datetime(2026, 1, 1, hour, tzinfo=UTC) for hour in (9, 10, 11))
MADE = {"metadata": {"name": "e", "namespace": "train", "creationTimestamp": "2026-01-01T09:00:00Z"}}


@pytest.mark.parametrize(("event", "expected"), [
    pytest.param({**MADE, "type": "Warning", "reason": "Failed", "message": " it did\n", "count": 3,
                  "lastTimestamp": "2026-01-01T10:00:00Z", "involvedObject": {"kind": "Pod", "name": "a-worker-0"}},
                 Happening(TEN, "Warning", "Failed", "pod/a-worker-0", "it did", 3, "e", "train"),
                 id="one that was told three times"),
    pytest.param({**MADE, "count": None, "eventTime": "2026-01-01T10:00:00.000000Z", "lastTimestamp": None,
                  "series": {"count": 5, "lastObservedTime": "2026-01-01T11:00:00.000000Z"}},
                 Happening(ELEVEN, "", "", "/", "", 5, "e", "train"), id="a series counts by itself, the newer way"),
    pytest.param({**MADE, "eventTime": "2026-01-01T10:00:00.000000Z"},
                 Happening(TEN, "", "", "/", "", 1, "e", "train"), id="one that happened once, the newer way"),
    pytest.param({**MADE, "lastTimestamp": "nonsense"}, Happening(NINE, "", "", "/", "", 1, "e", "train"),
                 id="a time that nobody can read: that of its making is the next best"),
    pytest.param({}, Happening(None, "", "", "/", ""), id="nothing is known"),
])
def test_an_event_as_it_is_read(event: Object, expected: Happening) -> None:
    assert expected == happening(event)


def test_events_of_one_second_are_in_the_order_in_which_they_were_written() -> None:
    def event(name: str, hour: int, revision: str) -> Object:
        return {"metadata": {"name": name, "resourceVersion": revision},
                "lastTimestamp": f"2026-01-01T{hour:02}:00:00Z"}

    events = [event("later", 10, "1"), event("second", 9, "10"), event("first", 9, "9"), event("elsewhere", 9, "x7"),
              {"metadata": {"name": "timeless", "resourceVersion": "99"}}]

    assert ["timeless", "elsewhere", "first", "second", "later"] == [
        each["metadata"]["name"] for each in sorted(events, key=in_order)]
