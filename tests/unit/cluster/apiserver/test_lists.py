"""Lists: selectors, pages over one snapshot, and what a resourceVersion means."""

import asyncio
from urllib.parse import parse_qsl

import pytest
import yaml
from tests.unit.cluster.apiserver.api import MAPS, PODS, TABLE, Api, config_map, pod, serving

from trainmaster.cluster.apiserver import lists
from trainmaster.kube.transport import Request


@pytest.fixture(autouse=True)
async def five(api: Api) -> None:
    for index, name in enumerate("abcde"):
        await api.made(MAPS, config_map(name, {"n": str(index), "even": "yes" if index % 2 == 0 else "no"}))


async def test_items_of_a_built_in_list_carry_no_kind(api: Api) -> None:
    found = (await api.get(MAPS)).json

    assert ("ConfigMapList", "v1", str(api.store.revision)) == (
        found["kind"], found["apiVersion"], found["metadata"]["resourceVersion"])
    assert not {"kind", "apiVersion"} & found["items"][0].keys()


@pytest.mark.parametrize(("query", "expected"), [
    pytest.param("labelSelector=even%3Dyes", "ace", id="equal"),
    pytest.param("labelSelector=even%21%3Dyes", "bd", id="not equal"),
    pytest.param("labelSelector=n+in+%281%2C2%29", "bc", id="one of"),
    pytest.param("labelSelector=n+notin+%281%2C2%29%2Ceven", "ade", id="none of, and there"),
    pytest.param("labelSelector=%21even", "", id="not there"),
    pytest.param("labelSelector=", "abcde", id="empty"),
    pytest.param("fieldSelector=metadata.name%3Dc", "c", id="by name"),
    pytest.param("fieldSelector=metadata.name%21%3Dc", "abde", id="all but one"),
    pytest.param("fieldSelector=metadata.name%3Dc&labelSelector=even%3Dno", "", id="name and label"),
    pytest.param("fieldSelector=metadata.name%3Dc&resourceVersion=0&limit=1", "c", id="name with a limit"),
])
async def test_selectors(api: Api, query: str, expected: str) -> None:
    assert list(expected) == (await api.get(MAPS, query)).names


@pytest.mark.parametrize("query", [
    pytest.param("labelSelector=a+b", id="two words"),
    pytest.param("labelSelector=a%3D%3D%3Db", id="three signs"),
    pytest.param("labelSelector=a+in+b", id="a set without brackets"),
    pytest.param("labelSelector=a%3Db%20c", id="a value with a space"),
    pytest.param("fieldSelector=spec.nodeName%3Dx", id="a field that config maps do not have"),
    pytest.param("fieldSelector=metadata.name", id="a field without a value"),
    pytest.param("limit=many", id="a limit that is no number"),
    pytest.param("continue=%7B%7D", id="a continue that is not ours"),
    pytest.param("continue=e30", id="a continue without content"),
    pytest.param("resourceVersion=abc", id="a revision that is no number"),
])
async def test_what_cannot_be_read_is_a_bad_request(api: Api, query: str) -> None:
    assert (400, "BadRequest") == ((answer := await api.get(MAPS, query)).code, answer.json["reason"])


@pytest.mark.parametrize(("query", "code", "said"), [
    pytest.param("limit=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax', id="a limit that is no number"),
    pytest.param("resourceVersion=x", 400, 'invalid resource version: resourceVersion: Invalid value: "x": '
                 'strconv.ParseUint: parsing "x": invalid syntax', id="a revision that is no number"),
    pytest.param("continue=x", 400, "invalid continue token: continue key is not valid: illegal base64 data at input "
                 "byte 0", id="a token that is none"),
    pytest.param("continue=eyJ2", 400, "invalid continue token: continue key is not valid: unexpected end of JSON "
                 "input",
                 id="half a token"),
    pytest.param("continue=e30", 400, "invalid continue token: continue key is not valid: server does not recognize "
                 "this encoded version ", id="an empty token"),
    pytest.param("continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MCwic3RhcnQiOiJwIn0", 400, "invalid continue token: "
                 "continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
                 id="a token without a revision"),
    pytest.param("resourceVersionMatch=Exact&resourceVersion=0", 422, 'ListOptions.meta.k8s.io "" is invalid: '
                 'resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
                 id="exactly whatever there is"),
    pytest.param("resourceVersionMatch=Exact&resourceVersion=1&continue=x", 422,
                 'ListOptions.meta.k8s.io "" is invalid: '
                 "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided",
                 id="a page of another moment"),
    pytest.param("sendInitialEvents=false", 422, 'ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: '
                 "sendInitialEvents is forbidden for list", id="an option of watches"),
    pytest.param("fieldSelector=data.a%3D1", 400, '"data.a" is not a known field selector: only "metadata.name", '
                 '"metadata.namespace"', id="a field that nobody can select by"),
    pytest.param("watch=1&continue=x", 422, 'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: '
                 "resourceVersionMatch is forbidden when continue is provided", id="a watch that goes on"),
    pytest.param("watch=1&resourceVersion=x", 500, 'resourceVersion: Invalid value: "x": strconv.ParseUint: parsing '
                 '"x": invalid syntax', id="a watch from nowhere"),
    pytest.param("watch=1&resourceVersionMatch=Exact&resourceVersion=1", 422, 'ListOptions.meta.k8s.io "" is invalid: '
                 "[resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless "
                 'sendInitialEvents is provided, resourceVersionMatch: Unsupported value: "Exact": supported values: '
                 '"NotOlderThan"]', id="a watch of one moment"),
])
async def test_refusals_are_in_the_words_of_kubernetes(api: Api, query: str, code: int, said: str) -> None:
    answer = await api.get(MAPS, query)

    assert (code, said) == (answer.code, answer.message)


async def test_a_negative_limit_is_none(api: Api) -> None:
    assert (await api.get(MAPS)).names == (await api.get(MAPS, "limit=-1")).names


async def test_one_object_of_a_moment_to_come(api: Api) -> None:
    assert 504 == (await api.get(f"{MAPS}/a", "resourceVersion=99999999")).code


async def test_a_watch_by_its_path(api: Api) -> None:
    async with api.watch("/api/v1/watch/namespaces/default/configmaps/b") as watch:
        assert ["ADDED b"] == await watch.told(1)
    assert 405 == (await api.post("/api/v1/watch/namespaces/default/configmaps", {})).code


async def test_pages_show_one_moment(api: Api) -> None:
    first = (await api.get(MAPS, "limit=2")).json
    await api.made(MAPS, config_map("bb"))
    await api.delete(f"{MAPS}/c")
    second = await api.get(MAPS, f"limit=2&continue={first['metadata']['continue']}")
    third = await api.get(MAPS, f"limit=2&continue={second.json['metadata']['continue']}")

    assert ["c", "d"] == second.names
    assert ["e"] == third.names
    assert (3, 1) == (first["metadata"]["remainingItemCount"], second.json["metadata"]["remainingItemCount"])
    assert "continue" not in third.json["metadata"]
    assert first["metadata"]["resourceVersion"] == third.json["metadata"]["resourceVersion"]


async def test_pages_of_a_selection_are_full(api: Api) -> None:
    first = await api.get(MAPS, "limit=2&labelSelector=even%3Dyes")
    rest = await api.get(MAPS, f"limit=2&labelSelector=even%3Dyes&continue={first.json['metadata']['continue']}")

    assert (["a", "c"], ["e"]) == (first.names, rest.names)
    assert "remainingItemCount" not in first.json["metadata"]


async def test_an_expired_page_offers_a_way_on(api: Api) -> None:
    first = (await api.get(MAPS, "limit=2")).json
    await api.delete(f"{MAPS}/d")
    await api.store.compact(api.store.revision)
    expired = await api.get(MAPS, f"limit=9&continue={first['metadata']['continue']}")
    rest = await api.get(MAPS, f"limit=9&continue={expired.json['metadata']['continue']}")

    assert (410, "Expired") == (expired.code, expired.json["reason"])
    assert ["c", "e"] == rest.names


@pytest.mark.parametrize(("query", "code", "expected"), [
    pytest.param("resourceVersion={old}&resourceVersionMatch=Exact", 200, "abcde", id="exactly that one"),
    pytest.param("resourceVersion={old}&resourceVersionMatch=NotOlderThan", 200, "bcde", id="that one or newer"),
    pytest.param("resourceVersion={old}", 200, "bcde", id="unsaid: newer will do"),
    pytest.param("resourceVersion={old}&limit=9", 200, "abcde", id="unsaid with a limit: exactly"),
    pytest.param("resourceVersion=0", 200, "bcde", id="any"),
    pytest.param("resourceVersion=99999", 504, "", id="not there yet"),
    pytest.param("resourceVersionMatch=Exact", 422, "", id="a match without a revision"),
    pytest.param("resourceVersion=0&resourceVersionMatch=Exact", 422, "", id="exactly any"),
    pytest.param("resourceVersion={old}&resourceVersionMatch=About", 422, "", id="an unknown match"),
])
async def test_revisions(api: Api, query: str, code: int, expected: str) -> None:
    old = api.store.revision
    await api.delete(f"{MAPS}/a")
    answer = await api.get(MAPS, query.format(old=old))

    assert code == answer.code
    assert code != 200 or list(expected) == answer.names


async def test_pods_are_found_by_node_and_phase(api: Api) -> None:
    await api.made(PODS, pod("p", nodeName="n"))
    await api.made(PODS, pod("q", nodeName="n"))
    await api.patch(f"{PODS}/q/status", {"status": {"phase": "Failed"}})
    query = "fieldSelector=spec.nodeName%3Dn%2Cstatus.phase%21%3DFailed%2Cstatus.phase%21%3DSucceeded"

    assert ["p"] == (await api.get("/api/v1/pods", query)).names


LARGE = 30_000      # bytes of padding, so that a few objects are a long list
FORMS = {
    "json": "application/json",
    "yaml": "application/yaml",
    "table": TABLE,
    "metadata": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "metadata in yaml": "application/yaml;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
}


@pytest.mark.parametrize("accept", [pytest.param(accept, id=name) for name, accept in FORMS.items()])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 120])
async def test_a_list_in_pieces_is_the_list(accept: str, count: int) -> None:
    async with serving() as api:
        for index in range(count):
            await api.made(MAPS, config_map(f"m-{index:03}"))
        answer = await api.get(MAPS, accept=accept)

    found = yaml.safe_load(answer.body)
    said = [row["cells"][0] for row in found["rows"]] if "rows" in found else [
        item["metadata"]["name"] for item in found["items"]]
    assert [f"m-{index:03}" for index in range(count)] == said
    assert {"kind", "apiVersion", "metadata"} < found.keys()


@pytest.mark.parametrize("query", [
    pytest.param("", id="passed on as it is stored"),
    pytest.param("labelSelector=even%3Dyes", id="searched"),
])
async def test_nobody_waits_for_the_end_of_a_long_list(api: Api, query: str) -> None:
    for index in range(60):
        await api.made(MAPS, config_map(f"m-{index:02}", {"even": "yes"}, padding="x" * LARGE))
    whole = await api.get(MAPS, query)
    stream = await api.transport.open(Request("GET", MAPS, parse_qsl(query), {"accept": "application/json"}))
    pieces, answered = [], []
    async for piece in stream.chunks():
        pieces.append(piece)
        other = asyncio.ensure_future(api.get(f"{MAPS}/a"))
        await asyncio.sleep(0)
        await api.patch(f"{MAPS}/m-59", {"data": {"padding": str(len(pieces))}})
        answered.append((await other).code)
    await stream.close()

    assert len(pieces) > 3
    assert [200] * len(pieces) == answered
    assert whole.body == b"".join(pieces), "what is changed meanwhile is not in it"


async def test_searching_gives_others_their_turns(api: Api) -> None:
    for index in range(2 * lists.STEP):
        await api.made(MAPS, config_map(f"m-{index:03}"))
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.ensure_future(count())
    await asyncio.sleep(0)
    before = turns
    assert ["a", "c", "e"] == (await api.get(MAPS, "labelSelector=even%3Dyes")).names
    assert turns - before >= 2
    other.cancel()
