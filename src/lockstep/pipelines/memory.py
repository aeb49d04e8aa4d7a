"""Results that are kept: a ConfigMap each, named after its key."""

from __future__ import annotations

import json
import logging
from typing import Final

from lockstep.api import duration, timestamp
from lockstep.api.core import CONFIG_MAPS, ConfigMap
from lockstep.api.pipeline import KEPT_LABEL, Keep, PipelineRun, PipelineRunSpec
from lockstep.api.wire import Json
from lockstep.kube.client import Client
from lockstep.kube.errors import AlreadyExists
from lockstep.kube.informer import Informer
from lockstep.pipelines.core.nodes import Node
from lockstep.pipelines.core.told import Kept

log = logging.getLogger(__name__)


LARGEST: Final = 512 << 10
"""Most bytes of a result that is kept."""


def name_of(key: str) -> str:
    """Return the name of the ConfigMap under which a result is kept."""
    return f"kept-{key[:40]}"


def longest_of(spec: PipelineRunSpec, keep: Keep | None) -> str | None:
    """Return the age with which a result ends: what its step states, else what its run does."""
    return (keep.longest if keep is not None else None) or spec.keep_longest


class Memory:
    """Finds and keeps results."""

    def __init__(self, client: Client, kept: Informer[ConfigMap]) -> None:
        self._client, self._kept = client, kept

    def find(self, namespace: str, key: str, longest: str | None, now: float) -> Kept | None:
        """Return what is kept under *key*, unless its end has come or it cannot be read.

        It ends with the age that was stated as it was kept, and for this step with *longest*.
        """
        found = self._kept.get(namespace, name_of(key))
        if found is None or found.data.get("key") != key:
            return None
        try:
            outputs = json.loads(found.data["outputs"])
            age = now - timestamp.parse(found.data["at"])
            end = timestamp.read(found.data.get("ends"))
        except (KeyError, ValueError) as error:
            log.warning("the kept result %s cannot be read: %s", found.metadata.name, error)
            return None
        if (end is not None and now > end) or (longest and age > duration.parse(longest)):
            return None
        return Kept(outputs, found.data.get("from", ""))

    async def keep(self, run: PipelineRun, node: Node, now: float) -> None:
        """Keep what *node* gave, in place of what was kept before.

        Raises:
            ApiError: when the server cannot be used now.
        """
        outputs = json.dumps(node.outputs)
        if len(outputs) > LARGEST:
            return
        name, space = name_of(node.key), run.metadata.namespace
        data = {
            "key": node.key,
            "outputs": outputs,
            "from": f"{run.metadata.name}/{node.id}",
            "at": timestamp.show(node.finished or now),
        }
        if longest := longest_of(run.spec, node.task.keep):
            data["ends"] = timestamp.show((node.finished or now) + duration.parse(longest))
        labels = {KEPT_LABEL: "true"}
        body: Json = {"metadata": {"name": name, "labels": labels}, "data": data}
        try:
            await self._client.create(CONFIG_MAPS, body, space)
        except AlreadyExists:
            # Of a result that states no end, the end of the one before is none.
            await self._client.patch(CONFIG_MAPS, name, {"data": {"ends": None, **data}}, space)
