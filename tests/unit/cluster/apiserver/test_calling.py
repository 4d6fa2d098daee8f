"""How webhooks are called: over one connection, by address or through a node, and only if they are who they say."""

import asyncio

import pytest
from aiohttp import web
from tests.unit.cluster.apiserver.api import MAPS, Api, config_map, serving
from tests.unit.cluster.apiserver.hook_server import HookServer, deny, hook, register

from trainmaster.api.meta import Object
from trainmaster.runtime.takeover import pump


async def test_one_connection_serves_many_calls(api: Api, server: HookServer) -> None:
    await register(api, "Validating", hook(server.client("/yes")))

    for index in range(5):
        await api.made(MAPS, config_map(f"m{index}"))

    assert (5, 1) == (len(server.asked), len(server.connections))


async def test_a_service_with_an_address_outside_is_called(api: Api, server: HookServer) -> None:
    client = {"service": {"name": "hooks", "namespace": "default", "path": "/no"},
              "caBundle": server.client("")["caBundle"]}
    await api.made("/api/v1/namespaces/default/services", {
        "metadata": {"name": "hooks"}, "spec": {"type": "ExternalName", "externalName": "localhost"}})
    await register(api, "Validating", hook({**client, "service": {**client["service"], "port": server.port}}))
    server.says["/no"] = deny("no")

    answer = await api.post(MAPS, config_map())

    # The certificate is for hooks.default.svc as well, and that is the name that is checked.
    assert 'admission webhook "a.example.com" denied the request: no' == answer.message


async def served_by_a_pod(api: Api, client: Object) -> None:
    await api.made("/api/v1/namespaces/default/services", {
        "metadata": {"name": "hooks"}, "spec": {"ports": [{"port": 443, "targetPort": 8443}]}})
    pod = {"ip": "10.1.0.7", "nodeName": "n", "targetRef": {"kind": "Pod", "name": "p"}}
    await api.made("/api/v1/namespaces/default/endpoints", {"metadata": {"name": "hooks"}, "subsets": [{
        "addresses": [pod], "ports": [{"port": 8443}]}]})
    service = {"name": "hooks", "namespace": "default", "path": "/no"}
    await register(api, "Validating", hook({"service": service, **client}))


@pytest.mark.parametrize(("heard", "trusted", "said"), [
    pytest.param(b"HTTP/1.1 101 Switching Protocols\r\n\r\n", True,
                 'admission webhook "a.example.com" denied the request: no', id="it is asked"),
    pytest.param(b"HTTP/1.1 101 Switching Protocols\r\n\r\n", False,
                 "tls: failed to verify certificate: x509: certificate signed by unknown authority",
                 id="it must be who it says"),
    pytest.param(b"HTTP/1.1 503 No\r\nContent-Length: 10\r\n\r\nno pod here", True, "no pod her",
                 id="the node cannot reach it"),
])
async def test_a_service_of_pods_is_called_through_their_node(
    server: HookServer, heard: bytes, trusted: bool, said: str
) -> None:
    heads = []

    async def behind(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(heard)
        theirs, ours = await asyncio.open_connection("127.0.0.1", server.port)
        await asyncio.gather(pump(reader, ours), pump(theirs, writer))
        ours.close()
        writer.close()

    server.says["/no"] = deny("no")
    node = await asyncio.start_server(behind, "127.0.0.1", 0)
    port = node.sockets[0].getsockname()[1]
    async with node, serving(reach=lambda _name: asyncio.open_connection("127.0.0.1", port)) as api:
        await served_by_a_pod(api, {"caBundle": server.client("")["caBundle"]} if trusted else {})

        answer = await api.post(MAPS, config_map())

    assert said in answer.message
    assert heads[0].startswith(b"GET /dial/10.1.0.7/8443 ")


async def test_a_service_of_pods_cannot_be_called_without_a_node_and_says_so(api: Api) -> None:
    await served_by_a_pod(api, {})

    answer = await api.post(MAPS, config_map())

    assert answer.message.startswith(
        'Internal error occurred: failed calling webhook "a.example.com": failed to call webhook: Post '
        '"https://hooks.default.svc:443/no?timeout=10s": service "hooks" leads to pods')


@pytest.mark.parametrize(("policy", "code"), [pytest.param("Fail", 500, id="refused where webhooks must answer"),
                                             pytest.param("Ignore", 201, id="and let through where not")])
async def test_a_host_that_is_none_is_a_webhook_that_fails(api: Api, policy: str, code: int) -> None:
    await register(api, "Validating", hook({"url": f"https://\u00e9{'a' * 80}/"}, failurePolicy=policy))

    answer = await api.post(MAPS, config_map())

    told = answer.json.get("message", "")
    assert (code, policy == "Fail") == (answer.code, 'failed calling webhook "a.example.com"' in told)


async def test_an_untrusted_certificate_is_refused(api: Api, server: HookServer) -> None:
    await register(api, "Validating", hook({"url": server.url("/yes")}))

    answer = await api.post(MAPS, config_map())

    assert (500, []) == (answer.code, server.asked)
    assert "tls: failed to verify certificate: x509: certificate signed by unknown authority" in answer.message


async def test_an_endless_answer_is_cut_off(api: Api, server: HookServer) -> None:
    await register(api, "Validating", hook(server.client("/huge")))
    server.says["/huge"] = web.Response(body=b" " * (4 << 20))

    answer = await api.post(MAPS, config_map())

    assert (500, True) == (answer.code, "the answer is larger than 3145728 bytes" in answer.message)
