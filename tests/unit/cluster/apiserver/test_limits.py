"""LimitRanges, and the quick yes for pods that they leave as they are."""

import copy

import orjson
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.cluster.apiserver.api import PODS, Api, pod

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import limits

RANGES = "/api/v1/namespaces/default/limitranges"
AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory"]), st.sampled_from(["0", "100m", "1", "2", "1Gi"]))
RESOURCES = st.fixed_dictionaries({}, optional={"requests": AMOUNTS, "limits": AMOUNTS})
CONTAINERS = st.lists(st.fixed_dictionaries({"name": st.just("c")}, optional={"resources": RESOURCES}), max_size=2)
LIMITS = st.fixed_dictionaries(
    {"type": st.sampled_from(["Container", "Pod", "PersistentVolumeClaim"])},
    optional=dict.fromkeys(("min", "max", "default", "defaultRequest", "maxLimitRequestRatio"), AMOUNTS))


@given(spec=st.fixed_dictionaries({"containers": CONTAINERS}, optional={"initContainers": CONTAINERS}),
       items=st.lists(LIMITS, max_size=2))
def test_a_pod_fits_if_nothing_is_filled_in_and_nothing_broken(spec: dict[str, Json], items: list[Object]) -> None:
    thing: Object = {"kind": "Pod", "metadata": {}, "spec": spec}
    ranges: list[Object] = [{"spec": {"limits": items}}]
    asked = orjson.loads(limits.amounts(thing))

    treated = copy.deepcopy(thing)
    untouched = not limits.fill(treated, ranges) and not limits.broken(treated, ranges)

    assert untouched == limits.fit(asked, ranges)


async def test_a_range_that_changed_holds_for_the_next_pod_that_asks_for_the_same(api: Api) -> None:
    containers = [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}}}]

    def bounds(most: str) -> Object:
        return {"metadata": {"name": "r"}, "spec": {"limits": [{"type": "Container", "max": {"cpu": most}}]}}

    await api.made(RANGES, bounds("2"))
    before = [(await api.post(PODS, pod(f"a-{number}", containers=containers))).code for number in range(3)]
    await api.put(f"{RANGES}/r", bounds("500m"))
    after = [(await api.post(PODS, pod(f"b-{number}", containers=containers))).code for number in range(3)]

    assert ([201] * 3, [403] * 3) == (before, after)
