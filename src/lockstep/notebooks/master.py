"""The secret that all keys and tokens of notebooks and kernels are derived from."""

from __future__ import annotations

import base64
import secrets
from dataclasses import dataclass

from lockstep.api.core import SECRETS, Secret
from lockstep.api.names import SYSTEM_NAMESPACE
from lockstep.api.permissions.capabilities import MASTER_SECRET
from lockstep.kube.client import Client
from lockstep.kube.errors import AlreadyExists, NotFound
from lockstep.notebooks.core.keys import MASTER_KEY


@dataclass
class Master:
    """Reads the secret once; with *make* it is made where it is missing."""

    client: Client
    make: bool = False
    _key: bytes = b""

    async def key(self) -> bytes:
        """Return the secret.

        Raises:
            NotFound: when it is missing, and not to be made.
            LookupError: when the namespace of the system is missing.
            ApiError: when the server cannot be used.
        """
        if not self._key:
            self._key = await self._read()
        return self._key

    async def _read(self) -> bytes:
        try:
            return _of(await self.client.get(SECRETS, MASTER_SECRET, SYSTEM_NAMESPACE))
        except NotFound:
            if not self.make:
                raise
        fresh = {
            "metadata": {"name": MASTER_SECRET},
            "type": "Opaque",
            "data": {MASTER_KEY: base64.b64encode(secrets.token_bytes(32)).decode()},
        }
        try:
            return _of(await self.client.create(SECRETS, fresh, SYSTEM_NAMESPACE))
        except NotFound as error:
            raise LookupError(
                f"the key of kernels has no place: create the namespace {SYSTEM_NAMESPACE}"
            ) from error
        except AlreadyExists:
            return _of(await self.client.get(SECRETS, MASTER_SECRET, SYSTEM_NAMESPACE))


def _of(secret: Secret) -> bytes:
    return base64.b64decode(secret.data[MASTER_KEY])
