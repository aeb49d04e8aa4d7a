"""Pods that ask for shares of cards and want those cards for themselves."""

from __future__ import annotations

from typing import Final

import msgspec

from lockstep.api.containers import Container, Quantity
from lockstep.api.core import Pod, PodSpec
from lockstep.api.names import GPU, GPU_CARDS, GPU_COMPUTE, GPU_ISOLATION_ANNOTATION, GPU_MEMORY
from lockstep.api.quantity import to_int

_SHARES: Final = (GPU_CARDS, GPU_COMPUTE, GPU_MEMORY)


def with_whole_cards(pod: Pod, spec: PodSpec) -> PodSpec:
    """Return the *spec* of a pod: with isolation ``whole`` its shares are whole cards.

    Containers of one pod use the same cards, so the most that one of them asks for counts.
    """
    if pod.metadata.annotations.get(GPU_ISOLATION_ANNOTATION) != "whole":
        return spec
    cards = max((_cards(one) for one in (*spec.containers, *spec.init_containers)), default=0)
    if not cards:
        return spec
    overhead = {**spec.overhead, GPU: to_int(spec.overhead.get(GPU, 0)) + cards}
    return msgspec.structs.replace(
        spec,
        containers=[_without_shares(one) for one in spec.containers],
        init_containers=[_without_shares(one) for one in spec.init_containers],
        overhead=overhead,
    )


def _cards(container: Container) -> int:
    asked = {**container.resources.limits, **container.resources.requests}
    shares = asked.get(GPU_COMPUTE) or asked.get(GPU_MEMORY)
    return max(1, to_int(asked.get(GPU_CARDS, 1))) if shares else 0


def _without_shares(container: Container) -> Container:
    def kept(amounts: dict[str, Quantity]) -> dict[str, Quantity]:
        return {name: amount for name, amount in amounts.items() if name not in _SHARES}

    given = container.resources
    fewer = msgspec.structs.replace(given, requests=kept(given.requests), limits=kept(given.limits))
    return msgspec.structs.replace(container, resources=fewer)
