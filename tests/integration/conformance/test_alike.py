"""The embedded server and kube-apiserver, asked the same."""

from __future__ import annotations

import asyncio

import pytest
from tests.integration.conformance.known import KNOWN, explains
from tests.integration.conformance.normal import differences, normal
from tests.integration.conformance.script import SCRIPT
from tests.support.apiserver import ApiServer
from tests.support.kube_apiserver import KubeApiServer

from lockstep.kube.crds import ensure_crds


@pytest.fixture(scope="module")
def found(shared_server: ApiServer, real_server: KubeApiServer) -> dict[str, list[str]]:
    """The differences of every request that is answered differently."""

    async def add_kinds() -> None:
        async with shared_server.client() as client:
            await ensure_crds(client)

    asyncio.run(add_kinds())
    answered = {}
    for ask in SCRIPT:
        ours, theirs = (
            normal(one.request(ask.method, ask.path, ask.body, content_type=ask.content_type))
            for one in (shared_server, real_server)
        )
        answered[ask.name] = differences(ours, theirs)
    return answered


@pytest.mark.parametrize("name", [ask.name for ask in SCRIPT])
def test_both_servers_answer_alike(found: dict[str, list[str]], name: str) -> None:
    unexplained = [
        line
        for line in found[name]
        if not any(explains(known, name, place(line)) for known in KNOWN)
    ]
    assert not unexplained


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known[2])
def test_every_known_difference_is_still_there(
    found: dict[str, list[str]], known: tuple[str, str, str]
) -> None:
    assert any(
        explains(known, name, place(line)) for name, lines in found.items() for line in lines
    )


def place(line: str) -> str:
    """Return where in the answer a difference is: field names may hold colons, but no blanks."""
    return line.partition(": ")[0]
