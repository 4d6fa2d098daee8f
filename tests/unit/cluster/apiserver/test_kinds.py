"""Services, config maps, secrets, events: the defaults and rules of the smaller built-in kinds."""

import pytest
from tests.unit.cluster.apiserver.api import MAPS, SERVICES, Api, config_map, service, serving

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver.services import NETWORK, Addresses

SECRETS = "/api/v1/namespaces/default/secrets"
EVENTS = "/api/v1/namespaces/default/events"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


class TestServices:
    async def test_the_defaults(self, api: Api) -> None:
        spec = (await api.made(SERVICES, service()))["spec"]

        assert spec == {
            "type": "ClusterIP", "sessionAffinity": "None",
            "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
            "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "internalTrafficPolicy": "Cluster",
            "clusterIP": "10.96.0.2", "clusterIPs": ["10.96.0.2"]}

    async def test_a_headless_service_has_no_address(self, api: Api) -> None:
        spec = (await api.made(SERVICES, service(clusterIP="None")))["spec"]

        assert ("None", ["None"]) == (spec["clusterIP"], spec["clusterIPs"])

    async def test_an_empty_address_means_the_one_it_has(self, api: Api) -> None:
        made = await api.made(SERVICES, service("a", clusterIP=""))

        answer = await api.patch(f"{SERVICES}/a", {"metadata": {"labels": {"a": "b"}}, "spec": {"clusterIP": ""}})

        assert (200, made["spec"]["clusterIP"]) == (answer.code, answer.json["spec"]["clusterIP"])

    async def test_addresses_are_not_given_twice(self, api: Api) -> None:
        first, second = await api.made(SERVICES, service("a")), await api.made(SERVICES, service("b"))
        await api.delete(f"{SERVICES}/a")
        third = await api.made(SERVICES, service("c", clusterIP=first["spec"]["clusterIP"]))

        assert first["spec"]["clusterIP"] != second["spec"]["clusterIP"]
        assert first["spec"]["clusterIP"] == third["spec"]["clusterIP"]

    @pytest.mark.parametrize(("spec", "said"), [
        pytest.param({"clusterIP": "10.96.0.2"}, "provided IP is already allocated", id="an address that is taken"),
        pytest.param({"clusterIP": "192.168.0.1"}, "the provided IP (192.168.0.1) is not in",
                     id="from elsewhere"),
        pytest.param({"clusterIP": "nowhere"}, "must be a valid IP address", id="an address that is none"),
        pytest.param({"ports": []}, "spec.ports: Required value", id="no ports"),
        pytest.param({"ports": [{"port": 0}]}, "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535",
                     id="port zero"),
        pytest.param({"ports": [{"port": 1}, {"port": 2}]}, "spec.ports[0].name: Required value",
                     id="several ports need names"),
        pytest.param({"type": "Magic"}, "spec.type: Unsupported value", id="an unknown type"),
        pytest.param({"type": "ExternalName", "ports": None}, "spec.externalName: Required value",
                     id="no external name"),
        pytest.param({"selector": {"a": "b c"}}, "spec.selector: Invalid value", id="a selector that selects nothing"),
    ])
    async def test_refused(self, api: Api, spec: Object, said: str) -> None:
        await api.made(SERVICES, service("first"))
        answer = await api.post(SERVICES, service("second", **spec))

        assert (422, True) == (answer.code, said in answer.message), answer.message
        # A refusal takes no address.
        assert (await api.made(SERVICES, service("third")))["spec"]["clusterIP"] == "10.96.0.3"

    async def test_a_name_may_start_with_a_digit(self, api: Api) -> None:
        assert 201 == (await api.post(SERVICES, service("1st"))).code

    async def test_two_protocols_of_one_port_share_a_node_port(self, api: Api) -> None:
        ports = [{"name": "a", "port": 53, "protocol": "TCP"}, {"name": "b", "port": 53, "protocol": "UDP"}]
        made = await api.made(SERVICES, service(type="NodePort", ports=ports))

        assert 1 == len({port["nodePort"] for port in made["spec"]["ports"]})

    async def test_a_name_without_address_and_pods_is_for_both_families(self, api: Api) -> None:
        made = await api.made(SERVICES, service(clusterIP="None", selector=None))

        assert (["IPv4", "IPv6"], "RequireDualStack") == (made["spec"]["ipFamilies"], made["spec"]["ipFamilyPolicy"])

    async def test_an_update_keeps_the_address(self, api: Api) -> None:
        made = await api.made(SERVICES, service())
        moved = await api.patch(f"{SERVICES}/s", {"spec": {"clusterIP": "10.96.7.7"}})
        kept = await api.put(f"{SERVICES}/s", service(selector={"a": "b"}))

        assert (422, True) == (moved.code, "may not change once set" in moved.message)
        assert made["spec"]["clusterIP"] == kept.json["spec"]["clusterIP"]

    async def test_becoming_external_gives_the_address_back(self, api: Api) -> None:
        made = await api.made(SERVICES, service())
        answer = await api.patch(f"{SERVICES}/s", {"spec": {"type": "ExternalName", "externalName": "example.com"}})
        again = await api.patch(f"{SERVICES}/s", {"spec": {"type": "ClusterIP", "externalName": None}})

        assert "clusterIP" not in answer.json["spec"]
        assert again.json["spec"]["clusterIP"] not in {"", made["spec"]["clusterIP"]}
        assert (await api.post(SERVICES, service("t", clusterIP=made["spec"]["clusterIP"]))).code == 201

    async def test_a_dry_run_takes_no_address(self, api: Api) -> None:
        await api.post(SERVICES, service("a", clusterIP="10.96.5.5"), "dryRun=All")

        assert (await api.post(SERVICES, service("b", clusterIP="10.96.5.5"))).code == 201

    async def test_addresses_in_use_are_known_after_a_restart(self) -> None:
        async with serving() as api:
            await api.made(SERVICES, service("a", clusterIP="10.96.5.5"))
            await api.server.start()

            assert (await api.post(SERVICES, service("b", clusterIP="10.96.5.5"))).code == 422


def test_addresses_can_run_out() -> None:
    addresses = Addresses(str(address) for address in NETWORK)

    with pytest.raises(ValueError, match="no address is left"):
        addresses.reserve("")


@pytest.mark.parametrize(("path", "body", "said"), [
    pytest.param(MAPS, {"metadata": {"name": "m"}, "data": {"": "x"}}, "data[]: Invalid value", id="an empty key"),
    pytest.param(MAPS, {"metadata": {"name": "m"}, "data": {"..": "x"}}, "must not be '..'", id="a key that climbs"),
    pytest.param(MAPS, {"metadata": {"name": "m"}, "data": {"a/b": "x"}}, "a valid config key must consist of",
                 id="a key with a slash"),
    pytest.param(MAPS, {"metadata": {"name": "m"}, "data": {"a": "x"}, "binaryData": {"a": "eA=="}},
                 "duplicate of key present in binaryData", id="the same key twice"),
    pytest.param(EVENTS, {"metadata": {"name": "e"}, "involvedObject": {"namespace": "other"}},
                 "does not match event.namespace", id="an event about another namespace"),
    pytest.param(LEASES, {"metadata": {"name": "l", "namespace": "kube-system"}, "spec": {"leaseDurationSeconds": 0}},
                 "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0", id="a lease for no time"),
])
async def test_refused(api: Api, path: str, body: Json, said: str) -> None:
    answer = await api.post(path, body)

    assert (422, True) == (answer.code, said in answer.message), answer.message


async def test_plain_text_of_a_secret_is_encoded_and_not_kept(api: Api) -> None:
    found = await api.made(SECRETS, {"metadata": {"name": "s"}, "data": {"a": "eA=="}, "stringData": {"b": "y"}})

    assert ({"a": "eA==", "b": "eQ=="}, "Opaque") == (found["data"], found["type"])
    assert "stringData" not in found


async def test_the_type_of_a_secret_stays(api: Api) -> None:
    await api.made(SECRETS, {"metadata": {"name": "s"}})
    answer = await api.patch(f"{SECRETS}/s", {"type": "other"})

    assert (422, True) == (answer.code, "type: Invalid value: \"other\": field is immutable" in answer.message)


@pytest.mark.parametrize(("change", "code"), [
    pytest.param({"data": {"a": "2"}}, 422, id="the data stays"),
    pytest.param({"immutable": None}, 422, id="the flag stays"),
    pytest.param({"metadata": {"labels": {"a": "b"}}}, 200, id="labels may change"),
])
async def test_immutable_means_immutable(api: Api, change: Json, code: int) -> None:
    await api.made(MAPS, {**config_map(a="1"), "immutable": True})

    assert code == (await api.patch(f"{MAPS}/m", change)).code


async def test_a_secret_of_an_empty_type_is_opaque_and_stays_so(api: Api) -> None:
    made = await api.made(SECRETS, {"metadata": {"name": "t"}, "type": ""})

    answer = await api.patch(f"{SECRETS}/t", {"metadata": {"labels": {"a": "b"}}, "type": ""})

    assert ("Opaque", 200, "Opaque") == (made["type"], answer.code, answer.json["type"])
