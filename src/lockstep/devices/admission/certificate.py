"""The webhook's certificate: in a Secret that its replicas share, and in its configuration."""

from __future__ import annotations

import asyncio
import base64
import logging
from typing import Any, Final

from lockstep.api.core import SECRETS, Secret
from lockstep.api.meta import ObjectMeta
from lockstep.api.resource import Resource
from lockstep.api.wire import Wire
from lockstep.devices.admission.objects import NAME, SERVICE
from lockstep.keys.authority import self_signed
from lockstep.kube.client import Client, Patch
from lockstep.kube.errors import AlreadyExists, ApiError, NotFound

log = logging.getLogger(__name__)

Pair = tuple[bytes, bytes]

AGAIN: Final = 30.0
"""Seconds between two looks whether the configuration still has the certificate."""


class ClientConfig(Wire, frozen=True):
    """How the API server trusts a webhook."""

    ca_bundle: str = ""


class Webhook(Wire, frozen=True):
    """One webhook of a configuration."""

    name: str
    client_config: ClientConfig = ClientConfig()


class Configuration(Wire, frozen=True):
    """A MutatingWebhookConfiguration, as far as its certificate goes."""

    metadata: ObjectMeta
    webhooks: list[Webhook] = []


CONFIGURATIONS: Final = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    False,
    Configuration,
)


async def pair(client: Client, namespace: str) -> Pair:
    """Return certificate and key as PEM; they are made where the Secret is missing.

    Raises:
        ApiError: when the Secret can neither be read nor made.
    """
    try:
        return _of(await client.get(SECRETS, SERVICE, namespace))
    except NotFound:
        pass
    certificate, key = self_signed(f"{SERVICE}.{namespace}.svc", addresses=("127.0.0.1",))
    data = {"tls.crt": certificate, "tls.key": key}
    fresh: dict[str, Any] = {
        "metadata": {"name": SERVICE},
        "type": "kubernetes.io/tls",
        "data": {name: base64.b64encode(value).decode() for name, value in data.items()},
    }
    try:
        return _of(await client.create(SECRETS, fresh, namespace))
    except AlreadyExists:
        return _of(await client.get(SECRETS, SERVICE, namespace))


async def keep_trusted(client: Client, certificate: bytes) -> None:
    """Have the configuration name the certificate until cancelled, also when it is applied anew."""
    wanted = base64.b64encode(certificate).decode()
    while True:
        try:
            await _trust(client, wanted)
        except NotFound:
            log.warning("no MutatingWebhookConfiguration %s asks this webhook yet", NAME)
        except ApiError as error:
            log.warning("the configuration %s: %s", NAME, error)
        await asyncio.sleep(AGAIN)


async def _trust(client: Client, wanted: str) -> None:
    found = await client.get(CONFIGURATIONS, NAME)
    untrusted = [one for one in found.webhooks if one.client_config.ca_bundle != wanted]
    if untrusted:
        webhooks = [{"name": one.name, "clientConfig": {"caBundle": wanted}} for one in untrusted]
        await client.patch(CONFIGURATIONS, NAME, {"webhooks": webhooks}, how=Patch.STRATEGIC)
        log.info("the API server trusts this webhook from now on")


def _of(secret: Secret) -> Pair:
    return base64.b64decode(secret.data["tls.crt"]), base64.b64decode(secret.data["tls.key"])
