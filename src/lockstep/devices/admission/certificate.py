"""The webhook's certificate: in a Secret that its replicas share, and in its configuration."""

from __future__ import annotations

import asyncio
import base64
import logging
import ssl
import time
from dataclasses import dataclass
from typing import Any, Final

from lockstep.api.core import SECRETS, Secret
from lockstep.api.meta import ObjectMeta
from lockstep.api.resource import Resource
from lockstep.api.wire import Wire
from lockstep.devices.admission.objects import NAME, SERVICE
from lockstep.keys.authority import self_signed, time_left
from lockstep.kube.client import Client, Patch
from lockstep.kube.errors import AlreadyExists, ApiError, Conflict, NotFound
from lockstep.kube.tls import load_pair

log = logging.getLogger(__name__)

Pair = tuple[bytes, bytes]

AGAIN: Final = 30.0
"""Seconds between two looks whether the configuration still has the certificate."""
LIFETIME: Final = 90 * 86400.0
RENEW_BEFORE: Final = 30 * 86400.0
"""Seconds before its end at which a certificate is renewed."""
PREVIOUS: Final = "previous.crt"
"""Key of the Secret: the certificate that other replicas may still show."""


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


@dataclass(frozen=True, slots=True)
class Keys:
    """What the Secret holds: the pair that is shown, and the certificate shown before it."""

    certificate: bytes
    key: bytes
    previous: bytes = b""
    version: str = ""

    @property
    def trusted(self) -> bytes:
        """Return the certificates of which a replica may show either, while all change over."""
        return self.certificate + self.previous


async def keys(client: Client, namespace: str, now: float | None = None) -> Keys:
    """Return the keys; they are made where the Secret is missing, and anew before they expire.

    Raises:
        ApiError: when the Secret can neither be read nor written.
    """
    now = time.time() if now is None else now
    try:
        found = _of(await client.get(SECRETS, SERVICE, namespace))
    except NotFound:
        return await _make(client, namespace)
    if time_left(found.certificate, now) > RENEW_BEFORE:
        return found
    certificate, key = _fresh(namespace)
    held = _data(Keys(certificate, key, found.certificate))
    body = {"metadata": {"resourceVersion": found.version}, "data": held}
    try:
        renewed = _of(await client.patch(SECRETS, SERVICE, body, namespace))
    except Conflict:  # another replica was faster
        return _of(await client.get(SECRETS, SERVICE, namespace))
    log.info("the webhook's certificate is renewed")
    return renewed


async def keep(client: Client, namespace: str, context: ssl.SSLContext, used: Keys) -> None:
    """Renew the certificate in time, have it trusted, and show it; until cancelled.

    The API server trusts a certificate before any replica shows it. The configuration gets it
    back, too, when it is applied anew.
    """
    while True:
        try:
            found = await keys(client, namespace)
            await _trust(client, base64.b64encode(found.trusted).decode())
            if found.certificate != used.certificate:
                load_pair(context, found.certificate, found.key)
                used = found
        except NotFound:
            log.warning("no MutatingWebhookConfiguration %s asks this webhook yet", NAME)
        except ApiError as error:
            log.warning("the configuration %s: %s", NAME, error)
        await asyncio.sleep(AGAIN)


async def _make(client: Client, namespace: str) -> Keys:
    fresh: dict[str, Any] = {
        "metadata": {"name": SERVICE},
        "type": "kubernetes.io/tls",
        "data": _data(Keys(*_fresh(namespace))),
    }
    try:
        return _of(await client.create(SECRETS, fresh, namespace))
    except AlreadyExists:
        return _of(await client.get(SECRETS, SERVICE, namespace))


def _fresh(namespace: str) -> Pair:
    host = f"{SERVICE}.{namespace}.svc"
    return self_signed(host, addresses=("127.0.0.1",), lifetime=LIFETIME)


async def _trust(client: Client, wanted: str) -> None:
    found = await client.get(CONFIGURATIONS, NAME)
    untrusted = [one for one in found.webhooks if one.client_config.ca_bundle != wanted]
    if untrusted:
        webhooks = [{"name": one.name, "clientConfig": {"caBundle": wanted}} for one in untrusted]
        await client.patch(CONFIGURATIONS, NAME, {"webhooks": webhooks}, how=Patch.STRATEGIC)
        log.info("the API server trusts this webhook from now on")


def _data(one: Keys) -> dict[str, str]:
    held = {"tls.crt": one.certificate, "tls.key": one.key, PREVIOUS: one.previous}
    return {name: base64.b64encode(value).decode() for name, value in held.items()}


def _of(secret: Secret) -> Keys:
    held = {name: base64.b64decode(value) for name, value in secret.data.items()}
    version = secret.metadata.resource_version
    return Keys(held["tls.crt"], held["tls.key"], held.get(PREVIOUS, b""), version)
