"""Addresses and node ports of services: handed out, kept, refused and given back."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

import pytest

from lockstep.apiserver.addresses import API_SERVER, NETWORK, allocate_cluster_ip
from lockstep.apiserver.bootstrap import create_missing
from lockstep.apiserver.catalog import Catalog, Served
from lockstep.apiserver.deletion import Deletion
from lockstep.apiserver.objects import Objects, WriteOptions
from lockstep.apiserver.status import StatusError
from lockstep.apiserver.store import Key, Store

Json = dict[str, Any]
OPTIONS = WriteOptions()
PORTS = [{"port": 80}]


class Services:
    """Services in the namespace default of a server's store."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        found = objects.catalog.find("", "v1", "services")
        assert found is not None
        self.served: Served = found

    async def create(self, name: str, **spec: Any) -> Json:
        obj = copy.deepcopy(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": name},
                "spec": {"ports": PORTS, **spec},
            }
        )
        await self.objects.create(self.served, "default", obj, OPTIONS)
        return self.spec(name)

    async def change(self, name: str, **spec: Any) -> Json:
        def merged(obj: Json) -> Json:
            kept = {
                k: v for k, v in {**obj["spec"], **copy.deepcopy(spec)}.items() if v is not None
            }
            return {**obj, "spec": kept}

        await self.objects.change(self.served, "default", name, merged, OPTIONS)
        return self.spec(name)

    async def delete(self, name: str) -> None:
        await self.objects.delete(self.served, "default", name, Deletion())

    def spec(self, name: str) -> Json:
        record = self.objects.store.get(Key("services", "default", name))
        assert record is not None
        return dict(record.object()["spec"])


@pytest.fixture
async def services(tmp_path: Path) -> AsyncIterator[Services]:
    store = Store(tmp_path / "store.db", synchronous="OFF")
    objects = Objects(store, Catalog())
    await create_missing(objects)
    yield Services(objects)
    await store.close()


@pytest.mark.parametrize(
    ("spec", "addressed", "node_port"),
    [
        ({}, True, False),
        ({"type": "NodePort"}, True, True),
        ({"type": "LoadBalancer"}, True, True),
        ({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False}, True, False),
        ({"clusterIP": "None"}, False, False),
        ({"type": "ExternalName", "externalName": "a.b"}, False, False),
    ],
)
async def test_what_a_service_is_given_follows_from_its_type(
    services: Services, spec: Json, addressed: bool, node_port: bool
) -> None:
    made = await services.create("one", **spec)
    if addressed:
        assert made["clusterIPs"] == [made["clusterIP"]]
        assert IPv4Address(made["clusterIP"]) in NETWORK
        assert made["clusterIP"] != API_SERVER
    else:
        assert made.get("clusterIP") == spec.get("clusterIP")
    assert ("nodePort" in made["ports"][0]) == node_port


async def test_services_that_come_together_share_nothing(services: Services) -> None:
    made = await asyncio.gather(*(services.create(f"s{i}", type="NodePort") for i in range(50)))
    assert len({spec["clusterIP"] for spec in made}) == 50
    assert len({spec["ports"][0]["nodePort"] for spec in made}) == 50


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"clusterIP": "10.96.0.7"}, "failed to allocate IP 10.96.0.7: provided IP is already"),
        ({"clusterIP": API_SERVER}, f"{API_SERVER}: provided IP is already allocated"),
        ({"clusterIP": "192.168.0.1"}, "the provided network does not match the current range"),
        ({"clusterIP": "10.96.255.255"}, "the provided network does not match"),
        (
            {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30007}]},
            "spec.ports[0].nodePort: Invalid value: 30007: provided port is already allocated",
        ),
        (
            {"type": "NodePort", "ports": [{"port": 80, "nodePort": 80}]},
            "The range of valid ports is 30000-32767",
        ),
    ],
)
async def test_what_is_not_free_is_refused(services: Services, spec: Json, said: str) -> None:
    first = {"clusterIP": "10.96.0.7", "ports": [{"port": 1, "nodePort": 30007}]}
    await services.create("first", type="NodePort", **first)
    with pytest.raises(StatusError) as refused:
        await services.create("second", **spec)
    assert said in str(refused.value)
    assert refused.value.code == 422


async def test_one_port_of_a_node_serves_two_protocols(services: Services) -> None:
    dns = [{"name": p, "protocol": p.upper(), "port": 53} for p in ("tcp", "udp")]
    made = await services.create("dns", type="NodePort", ports=dns)
    first, second = (port["nodePort"] for port in made["ports"])
    assert first == second


async def test_what_a_change_does_not_mention_is_kept(services: Services) -> None:
    before = await services.create("web", type="NodePort")
    after = await services.change("web", clusterIP=None, clusterIPs=None, ports=PORTS)
    assert after == before
    with pytest.raises(StatusError, match="may not change once set"):
        await services.change("web", clusterIP="10.96.0.9", clusterIPs=["10.96.0.9"])


async def test_a_change_of_type_gives_back_and_takes(services: Services) -> None:
    first = await services.create("web", type="NodePort")
    plain = await services.change("web", type="ClusterIP")
    assert plain["clusterIP"] == first["clusterIP"]
    assert "nodePort" not in plain["ports"][0]
    assert "externalTrafficPolicy" not in plain
    elsewhere = await services.change("web", type="ExternalName", externalName="a.b")
    assert set(elsewhere) == {"externalName", "ports", "sessionAffinity", "type"}
    back = await services.change("web", type="NodePort", externalName=None)
    assert IPv4Address(back["clusterIP"]) in NETWORK
    assert back["ports"][0]["nodePort"] >= 30000


async def test_what_a_deleted_service_held_is_free_again(services: Services) -> None:
    await services.create("first", clusterIP="10.96.0.7")
    await services.delete("first")
    assert (await services.create("second", clusterIP="10.96.0.7"))["clusterIP"] == "10.96.0.7"


def test_addresses_are_handed_out_once_each() -> None:
    network = IPv4Network("10.0.0.0/29")
    taken: set[str] = set()
    for seed in range(5):
        taken.add(allocate_cluster_ip(network, taken, seed * 7))
    assert taken == {f"10.0.0.{n}" for n in range(2, 7)}
    with pytest.raises(ValueError, match="full"):
        allocate_cluster_ip(network, taken, 0)
