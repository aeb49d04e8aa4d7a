"""What was decided, done by calls of the API server."""

from __future__ import annotations

import logging
from typing import Final

from lockstep.kube.client import Client
from lockstep.kube.errors import AlreadyExists, ApiError
from lockstep.serve.core.world import Action, Change, Create, Delete

log = logging.getLogger(__name__)

_REFUSALS: Final = frozenset({400, 403, 405, 413, 422})


async def carry_out(client: Client, namespace: str, action: Action) -> None:
    """Do *action*; what the server refuses for good is said in the log.

    Raises:
        ApiError: when it could not be done now.
    """
    try:
        if isinstance(action, Create):
            await client.create(action.resource, action.body, namespace)
        elif isinstance(action, Delete):
            await client.delete(
                action.resource, action.name, namespace, uid=action.uid, propagation="Background"
            )
        elif isinstance(action, Change):
            await client.patch(action.resource, action.name, action.patch, namespace)
    except AlreadyExists:
        # Made a moment ago, and not in the cache yet.
        return
    except ApiError as error:
        if error.status not in _REFUSALS:
            raise
        log.warning("%s %s was refused: %s", action.resource.kind, namespace, error.message)
