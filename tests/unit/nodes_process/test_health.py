"""Probes: what their results amount to."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.api.wire import convert
from lockstep.nodes.process.health import Health, Kind, probes
from lockstep.nodes.process.prober import port_number
from lockstep.nodes.process.spec import Container


def container(**fields: Any) -> Container:
    return convert({"name": "main", **fields}, Container)


def probe(**fields: Any) -> dict[str, Any]:
    return {"exec": {"command": ["true"]}, **fields}


@pytest.mark.parametrize(
    ("fields", "results", "started", "ready", "unhealthy"),
    [
        ({}, "", True, True, ""),
        ({"readinessProbe": probe()}, "", True, False, ""),
        ({"readinessProbe": probe()}, "R+", True, True, ""),
        ({"readinessProbe": probe(successThreshold=2)}, "R+", True, False, ""),
        ({"readinessProbe": probe(successThreshold=2)}, "R+ R+", True, True, ""),
        ({"readinessProbe": probe()}, "R+ R- R-", True, True, ""),
        ({"readinessProbe": probe()}, "R+ R- R- R-", True, False, ""),
        ({"readinessProbe": probe()}, "R+ R- R- R+ R- R-", True, True, ""),
        ({"livenessProbe": probe()}, "", True, True, ""),
        ({"livenessProbe": probe()}, "L- L-", True, True, ""),
        ({"livenessProbe": probe()}, "L- L- L-", True, True, "failed liveness probe"),
        (
            {"livenessProbe": probe(failureThreshold=1)},
            "L+ L-",
            True,
            True,
            "failed liveness probe",
        ),
        ({"startupProbe": probe()}, "", False, False, ""),
        ({"startupProbe": probe()}, "S- S- S+", True, True, ""),
        ({"startupProbe": probe()}, "S- S- S-", False, False, "failed startup probe"),
    ],
)
def test_results_amount_to(
    fields: dict[str, Any], results: str, started: bool, ready: bool, unhealthy: str
) -> None:
    kinds = {"S": Kind.STARTUP, "L": Kind.LIVENESS, "R": Kind.READINESS}
    probed = container(**fields)
    health = Health.begin(probed)
    for letter, sign in results.split():
        kind = kinds[letter]
        health = health.count(kind, sign == "+", probes(probed)[kind])
    assert (health.started, health.ready, health.unhealthy(probed)) == (started, ready, unhealthy)


def test_other_probes_wait_for_the_startup_probe() -> None:
    probed = container(startupProbe=probe(), livenessProbe=probe())
    health = Health.begin(probed)
    assert (health.due(Kind.STARTUP), health.due(Kind.LIVENESS)) == (True, False)
    health = health.count(Kind.STARTUP, True, probes(probed)[Kind.STARTUP])
    assert (health.due(Kind.STARTUP), health.due(Kind.LIVENESS)) == (False, True)


def test_ports_have_numbers_or_names() -> None:
    found = container(ports=[{"name": "web", "containerPort": 8080}])
    assert [port_number(port, found) for port in (80, "81", "web")] == [80, 81, 8080]
    with pytest.raises(ValueError, match="no port 'db'"):
        port_number("db", found)
