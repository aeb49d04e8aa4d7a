"""Which provider serves a pool."""

from __future__ import annotations

import base64
from pathlib import Path

from lockstep.api.core import SECRETS
from lockstep.api.names import SYSTEM_NAMESPACE
from lockstep.kube.client import Client
from lockstep.kube.errors import ApiError
from lockstep.pools.core.pool import Pool
from lockstep.pools.providers.contract import Provider, ProviderError
from lockstep.pools.providers.external import by_command, by_hook
from lockstep.pools.providers.karpenter import Karpenter
from lockstep.pools.providers.provisioning import Provisioning
from lockstep.pools.providers.simulated import Simulated


class Providers:
    """The providers of one process of controllers."""

    def __init__(self, client: Client, commands: Path | None = None) -> None:
        """*commands* is the directory of the programs that pools may name; None for none."""
        self._client = client
        self._by_field: dict[str, Provider] = {
            "simulated": Simulated(client),
            "provisioning_request": Provisioning(client),
            "karpenter": Karpenter(client),
            "command": by_command(commands),
            "hook": by_hook(self._token),
        }

    def of(self, pool: Pool) -> Provider:
        """Return the provider of a pool.

        Raises:
            ProviderError: when the pool names none.
        """
        stated = pool.object.spec.provider
        for field, provider in self._by_field.items():
            if getattr(stated, field) is not None:
                return provider
        raise ProviderError("spec.provider: none is set", "ProviderMissing")

    async def _token(self, secret: str) -> str:
        try:
            found = await self._client.get(SECRETS, secret, SYSTEM_NAMESPACE)
        except ApiError as error:
            raise ProviderError(f"spec.provider.hook.tokenSecret: {error}") from None
        text = found.data.get("token", "")
        if not text:
            raise ProviderError(
                f"spec.provider.hook.tokenSecret: Secret {secret} in {SYSTEM_NAMESPACE} has no key "
                "token; add it"
            )
        return base64.b64decode(text).decode().strip()
