"""A job that cannot start says why, in its status, within a minute."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.process_node import needs_mounts
from tests.support.training import Cluster, role
from tests.support.waiting import eventually

from lockstep.api.core import CONFIG_MAPS, EVENTS, SERVICES


def variable(name: str, **source: Any) -> dict[str, Any]:
    return {"container": {"env": [{"name": name, **source}]}}


async def test_a_missing_config_map_is_named_until_it_exists(
    cluster: Cluster,
) -> None:
    wanted = {"valueFrom": {"configMapKeyRef": {"name": "settings", "key": "x"}}}
    await cluster.submit("unset", role('test "$X" = 1', **variable("X", **wanted)))
    status = await cluster.says("unset", 'configmap "settings" not found')
    assert status.phase == "Starting"
    assert status.message.startswith("unset-worker-")
    assert "CreateContainerConfigError" in status.message
    body = {"metadata": {"name": "settings", "namespace": "default"}, "data": {"x": "1"}}
    await cluster.client.create(CONFIG_MAPS, body)
    await cluster.reaches("unset", "Succeeded")


async def test_events_explain_a_volume_that_cannot_be_mounted(
    cluster: Cluster,
) -> None:
    needs_mounts()
    pod = {"volumes": [{"name": "v", "configMap": {"name": "nowhere"}}]}
    container = {"volumeMounts": [{"name": "v", "mountPath": "/mnt"}]}
    await cluster.submit("unmounted", role("true", pod=pod, container=container))
    await cluster.says("unmounted", 'configmap "nowhere" not found')


async def test_a_template_the_server_refuses_is_quoted_with_its_field(
    cluster: Cluster,
) -> None:
    await cluster.submit("refused", role("true", container={"name": "Not_A_Name"}))
    status = await cluster.says("refused", "spec.containers[0].name")
    assert status.phase == "Pending"
    assert "Not_A_Name" in status.message
    created = next(c for c in status.conditions if c.type == "Created")
    assert (created.status, created.reason) == ("False", "Refused")


@pytest.mark.parametrize(
    ("name", "roles", "spec", "expected"),
    [
        (
            "contradicts",
            [role("true", **variable("WORLD_SIZE", value="7"))],
            {},
            "spec.roles[0].template.spec.containers[0].env[0]: given 'WORLD_SIZE=7'",
        ),
        ("indivisible", [role("true")], {"parallelism": {"tensor": 4}}, "the world size 2"),
        ("x" * 60, [role("true")], {}, "at most 63 characters"),
    ],
)
async def test_a_senseless_spec_is_named_by_its_field(
    cluster: Cluster, name: str, roles: list[Any], spec: dict[str, Any], expected: str
) -> None:
    await cluster.submit(name, *roles, framework="pytorch", **spec)
    status = await cluster.says(name, expected)
    created = next(c for c in status.conditions if c.type == "Created")
    assert (created.status, created.reason) == ("False", "InvalidSpec")
    assert not await cluster.pods(name)


async def test_a_foreign_service_is_in_the_way_until_it_goes(
    cluster: Cluster,
) -> None:
    body = {
        "metadata": {"name": "taken", "namespace": "default"},
        "spec": {"ports": [{"port": 80}]},
    }
    await cluster.client.create(SERVICES, body)
    await cluster.submit("taken", role("true"))
    await cluster.says("taken", "Service taken exists already and belongs to something else")
    await cluster.client.delete(SERVICES, "taken", "default")
    await cluster.reaches("taken", "Succeeded")


async def test_what_happens_is_told_in_events_too(cluster: Cluster) -> None:
    await cluster.submit("told", role("exit 1"), recovery={"maxRestarts": 1})
    await cluster.reaches("told", "Failed")

    async def reasons() -> set[str] | None:
        found = await cluster.client.list(
            EVENTS, "default", field_selector="involvedObject.name=told"
        )
        seen = {event.reason for event in found.items}
        return seen if {"Placed", "Restarting", "Failed"} <= seen else None

    await eventually(reasons, 60, "the events")
