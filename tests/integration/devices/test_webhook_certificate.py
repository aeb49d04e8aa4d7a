"""The webhook's certificate in its Secret: made once, renewed before its end."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import AsyncIterator

import pytest
from tests.support.apiserver import ApiServer

from lockstep.api.core import NAMESPACES, SECRETS
from lockstep.devices.admission.certificate import LIFETIME, RENEW_BEFORE, keys
from lockstep.devices.admission.objects import SERVICE
from lockstep.keys.authority import self_signed, time_left
from lockstep.kube.client import Client

SPACE = "webhooks"


@pytest.fixture
async def client(server: ApiServer) -> AsyncIterator[Client]:
    async with server.client() as found:
        await found.create(NAMESPACES, {"metadata": {"name": SPACE}})
        yield found


async def test_replicas_share_one_pair(client: Client) -> None:
    made = await asyncio.gather(*(keys(client, SPACE) for _ in range(3)))
    assert len({(one.certificate, one.key) for one in made}) == 1
    assert time_left(made[0].certificate, time.time()) > LIFETIME - 3600


async def test_a_pair_near_its_end_is_renewed_once(client: Client) -> None:
    old, key = self_signed("webhook", lifetime=RENEW_BEFORE - 60)
    held = {"tls.crt": old, "tls.key": key}
    data = {name: base64.b64encode(value).decode() for name, value in held.items()}
    body = {"metadata": {"name": SERVICE}, "type": "kubernetes.io/tls", "data": data}
    await client.create(SECRETS, body, SPACE)
    renewed = await asyncio.gather(*(keys(client, SPACE) for _ in range(3)))
    assert len({one.certificate for one in renewed}) == 1
    (one, *_) = renewed
    assert time_left(one.certificate, time.time()) > LIFETIME - 3600
    assert one.trusted == one.certificate + old, "replicas may show either while they change over"
