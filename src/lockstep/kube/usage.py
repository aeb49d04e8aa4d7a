"""Asking the recorder what was used and what it cost, through the API server alone."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from lockstep.api.job_record import JobRecord
from lockstep.api.names import SYSTEM_NAMESPACE
from lockstep.api.packing import unpack
from lockstep.api.usage_query import USAGE_QUERIES, UsageQuerySpec, UsageQueryStatus
from lockstep.api.wire import to_builtins
from lockstep.kube.client import Client
from lockstep.kube.errors import ApiError, Forbidden, NotFound
from lockstep.kube.named import team_namespaces

PATIENCE: Final = 20.0
"""Seconds for which an answer is waited for."""
_LOOK_AGAIN: Final = 0.05
_NO_RECORDER: Final = (
    "no recorder of usage answers; it runs in `lockstep up`, and on clusters as `lockstep recorder`"
)


class NoAnswer(Exception):
    """No recorder answers, or it refuses; the text says why and what to do."""


class Refused(NoAnswer):
    """The recorder refuses, such as an answer that is too long."""


async def ask(
    client: Client, namespace: str, spec: UsageQuerySpec, patience: float = PATIENCE
) -> UsageQueryStatus:
    """Return the recorder's answer about a namespace; about all in ``lockstep-system``.

    Raises:
        Forbidden: when the user may not see what the namespace uses.
        NoAnswer: when none comes within *patience* seconds.
        Refused: when the recorder refuses.
        ApiError: when the server does not answer.
    """
    body = {"metadata": {"generateName": "usage-"}, "spec": to_builtins(spec)}
    try:
        asked = await client.create(USAGE_QUERIES, body, namespace)
    except NotFound:
        raise NoAnswer(_NO_RECORDER) from None
    name = asked.metadata.name
    try:
        async with asyncio.timeout(patience):
            wait = _LOOK_AGAIN
            while not asked.status.state:
                await asyncio.sleep(wait)
                wait = min(1.0, wait * 1.5)
                asked = await client.get(USAGE_QUERIES, name, namespace)
    except (TimeoutError, NotFound):
        raise NoAnswer(_NO_RECORDER) from None
    finally:
        with suppress(ApiError):
            await client.delete(USAGE_QUERIES, name, namespace)
    if asked.status.state == "Refused":
        raise Refused(asked.status.message)
    return asked.status


async def ask_all(
    client: Client, own: str, spec: UsageQuerySpec, patience: float = PATIENCE
) -> dict[str, UsageQueryStatus]:
    """Return the answer about all namespaces, or about each of the user's, by namespace.

    The user's namespaces are those of the teams that the user may read, and *own*.

    Raises:
        Forbidden: when the user may see the use of none.
        NoAnswer: as ``ask``.
        ApiError: when the server does not answer.
    """
    try:
        return {"": await ask(client, SYSTEM_NAMESPACE, spec, patience)}
    except Forbidden:
        spaces = await team_namespaces(client, own)
    answers: dict[str, UsageQueryStatus] = {}
    refusal: Forbidden | None = None
    for space in spaces:
        try:
            answers[space] = await ask(client, space, spec, patience)
        except Forbidden as error:
            refusal = error
    if not answers and refusal is not None:
        raise refusal
    return answers


async def recorded_jobs(
    client: Client, namespace: str, name: str = "", patience: float = 3.0
) -> list[JobRecord]:
    """Return the jobs of a namespace that are on record, of one name or all, the newest first.

    Without a recorder, or without the right to ask it, there are none.

    Raises:
        ApiError: when the server does not answer.
    """
    spec = UsageQuerySpec(by=["job"], shape="Jobs", job=name)
    with suppress(NoAnswer, Forbidden, ValueError):
        answer = await ask(client, namespace, spec, patience)
        found: list[JobRecord] = unpack(answer.records, list[JobRecord])
        return found
    return []
