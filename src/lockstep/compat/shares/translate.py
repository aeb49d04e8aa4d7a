"""A pod that asks for shares in another system's words, as a pod of ours."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from lockstep.api import names, quantity
from lockstep.api.wire import Json
from lockstep.compat.shares import fractions
from lockstep.compat.shares.settings import Settings
from lockstep.compat.shares.words import ALL, GPUSHARE, NVSHARE, SHARED, UNHELD, Words
from lockstep.compat.translation import Refused

DEFAULT_SCHEDULERS: Final = ("", "default-scheduler", names.SCHEDULER_NAME)
OVERSUBSCRIBE: Final = "CUDA_OVERSUBSCRIBE"
"""HAMi's variable for memory beyond the card."""
BEYOND: Final = "a share has no memory beyond its cards: nothing is swapped to the host"
CardMemory = Callable[[], int | None]
"""Returns the MiB of every card of the cluster; None where they differ or are not known."""


@dataclass(frozen=True, slots=True)
class Share:
    """What one container asks for: cards, MiB and hundredths of each."""

    cards: int = 1
    memory: int = 0
    compute: int = 0


def translated(
    pod: Json,
    card_memory: CardMemory = lambda: None,
    settings: Callable[[], Settings] = Settings,
) -> Json | None:
    """Return *pod* with our own resources; none when it uses no other system's words.

    Raises:
        Refused: when it asks for what cannot be held.
    """
    containers = list(_containers(pod))
    _refuse_unheld(containers)
    if containers and fractions.asks(pod):
        return fractions.translated(pod, card_memory)
    words = _words_of(containers, settings)
    if words is None:
        return None
    found = copy.deepcopy(pod)
    offline = any(_number(_asked(one), PRIORITY, at) > 0 for at, one in containers)
    for at, container in _containers(found):
        _container(words, container, at, card_memory)
    spec = found["spec"]
    scheduler = spec.get("schedulerName", "")
    allowed = (*DEFAULT_SCHEDULERS, *words.schedulers)
    if scheduler not in allowed:
        raise Refused("spec.schedulerName", scheduler, f"leave it out, or say {allowed[-1]}")
    spec["schedulerName"] = names.SCHEDULER_NAME
    _annotate(words, found, offline=offline)
    return found


def _containers(pod: Json) -> Iterator[tuple[str, Json]]:
    spec = pod.get("spec")
    for place in ("initContainers", "containers"):
        given = spec.get(place) if isinstance(spec, dict) else None
        for index, container in enumerate(given if isinstance(given, list) else []):
            if isinstance(container, dict):
                yield f"spec.{place}[{index}]", container


def _refuse_unheld(containers: Sequence[tuple[str, Json]]) -> None:
    for at, container in containers:
        _refuse_beyond_card(at, container)
        for name, given in _asked(container).items():
            if name in UNHELD:
                remedy = "shares of such cards cannot be held; ask for whole cards"
                if name == NVSHARE:
                    remedy = f"{BEYOND}; ask for {names.GPU_MEMORY} and {names.GPU_COMPUTE}"
                elif "remote" in name:
                    remedy = "cards of other nodes cannot be used; ask for cards of the pod's node"
                raise Refused(f"{at}.resources.limits[{name}]", given, remedy)


def _refuse_beyond_card(at: str, container: Json) -> None:
    """Refuse a container that counts on memory which its cards do not have."""
    given = container.get("env")
    for index, one in enumerate(given if isinstance(given, list) else []):
        if not isinstance(one, dict) or one.get("name") != OVERSUBSCRIBE:
            continue
        value = str(one.get("value", "")).lower()
        if value in ("true", "1"):
            remedy = f"{BEYOND}; leave it out"
            raise Refused(f"{at}.env[{index}].value of {OVERSUBSCRIBE}", one["value"], remedy)


def _words_of(
    containers: Sequence[tuple[str, Json]], settings: Callable[[], Settings]
) -> Words | None:
    asked = {name for _, container in containers for name in _asked(container)}
    if SHARED in asked:
        return _turns(settings())
    for words in ALL:
        if asked & set(words.marks):
            return replace(words, unit=settings().gpushare_unit) if words is GPUSHARE else words
    return None


def _turns(settings: Settings) -> Words:
    """Return the words of time slices: one is a part of a card, and may use what is idle."""
    if not settings.replicas:
        raise Refused(
            f"spec.containers.resources.limits[{SHARED}]",
            None,
            "into how many turns a card is split is not known; ask for lockstep.dev/gpu-compute",
        )
    part = 100 // settings.replicas
    return Words("time-slicing", (SHARED,), turns=SHARED, turn=part, policy="burst")


def _asked(container: Json) -> dict[str, Any]:
    resources = container.get("resources")
    given: dict[str, Any] = {}
    for side in ("requests", "limits"):
        amounts = resources.get(side) if isinstance(resources, dict) else None
        given |= amounts if isinstance(amounts, dict) else {}
    return given


def _container(words: Words, container: Json, at: str, card_memory: CardMemory) -> None:
    asked = _asked(container)
    if not any(name in asked for name in words.all):
        return
    if (container.get("securityContext") or {}).get("privileged"):
        raise Refused(
            f"{at}.securityContext.privileged",
            True,
            "a privileged container reaches all cards; leave it out, or ask for whole cards",
        )
    where = f"{at}.resources.limits"
    if not any(name in asked for name in words.marks):
        raise Refused(
            f"{where}[{words.cards}]",
            asked.get(words.cards),
            "other containers of this pod ask for shares; ask for a share here too",
        )
    share = _share(words, asked, where, card_memory)
    ours = {names.GPU_CARDS: share.cards} if share.cards > 1 else {}
    ours |= {names.GPU_MEMORY: share.memory} if share.memory else {}
    ours |= {names.GPU_COMPUTE: share.compute} if share.compute else {}
    resources = container["resources"]
    for side in ("requests", "limits"):
        amounts = resources.get(side)
        if isinstance(amounts, dict):
            resources[side] = {k: v for k, v in amounts.items() if k not in words.all}
    resources["limits"] = {
        **(resources.get("limits") or {}),
        **{name: str(amount) for name, amount in ours.items()},
    }


def _share(words: Words, asked: Mapping[str, Any], at: str, card_memory: CardMemory) -> Share:
    if words.whole:
        return _of_whole(words, asked, at, card_memory)
    if words.turns:
        return Share(compute=_number(asked, words.turns, at, most=1) * words.turn)
    cards = _number(asked, words.cards, at) or 1
    memory = _number(asked, words.memory, at) * words.unit
    compute = _number(asked, words.compute, at, most=None if words.spread else 100)
    if words.spread and compute > 100:
        cards = -(-compute // 100)
        return Share(cards, memory // cards, compute // cards)
    percent = _number(asked, words.percent, at, most=100)
    if memory and percent and percent < 100:
        raise Refused(
            f"{at}[{words.percent}]", percent, f"leave it out, or leave out {words.memory}"
        )
    if percent and not memory:
        memory = _of_card(percent, f"{at}[{words.percent}]", words, card_memory)
    if not memory and not compute:
        # All of the memory and no cap: the card is its own.
        compute = 100
    return Share(cards, memory, compute)


def _of_whole(words: Words, asked: Mapping[str, Any], at: str, card_memory: CardMemory) -> Share:
    """Return the share for hundredths of cards: below 100 of one, else of whole ones."""
    hundredths = _number(asked, words.whole, at)
    if hundredths > 100 and hundredths % 100:
        remedy = "at most 100, or whole cards: a multiple of 100"
        raise Refused(f"{at}[{words.whole}]", hundredths, remedy)
    part = min(100, hundredths)
    memory = _of_card(part, f"{at}[{words.whole}]", words, card_memory)
    return Share(max(1, hundredths // 100), memory, part)


def _of_card(percent: int, at: str, words: Words, card_memory: CardMemory) -> int:
    whole = card_memory()
    if whole is None:
        instead = words.memory or names.GPU_MEMORY
        remedy = f"the cluster's cards differ in memory, or are not known; give {instead}"
        raise Refused(at, percent, remedy)
    return whole * percent // 100


def _number(asked: Mapping[str, Any], name: str, at: str, most: int | None = None) -> int:
    if not name or name not in asked:
        return 0
    given = asked[name]
    try:
        milli = quantity.to_milli(given)
    except ValueError:
        milli = -1
    if milli < 0 or milli % 1000:
        raise Refused(f"{at}[{name}]", given, "a whole number is needed")
    if most is not None and milli > most * 1000:
        raise Refused(f"{at}[{name}]", given, f"at most {most} of a card; take more cards")
    return milli // 1000


_POLICIES: Final = {"default": "burst", "force": "fixed", "disable": "none"}


PRIORITY: Final = "nvidia.com/priority"
"""Of HAMi: 0 goes before 1."""
CHOICES: Final = ("use-gputype", "nouse-gputype", "use-gpuuuid", "nouse-gpuuuid", "numa-bind")


def _annotate(words: Words, pod: Json, *, offline: bool) -> None:
    """Say in our own words how compute is held, and which words the pod was written in."""
    meta = pod.setdefault("metadata", {})
    told: dict[str, str] = dict(meta.get("annotations") or {})
    told[names.DIALECT_ANNOTATION] = words.dialect
    told.setdefault(names.GPU_POLICY_ANNOTATION, words.policy)
    if words.dialect == "hami":
        mode = told.get("nvidia.com/vgpu-mode", "hami-core")
        if mode != "hami-core":
            at = "metadata.annotations[nvidia.com/vgpu-mode]"
            raise Refused(at, mode, "shares are held as by hami-core; leave it out")
        for choice in CHOICES:
            if given := told.get(f"nvidia.com/{choice}"):
                at = f"metadata.annotations[nvidia.com/{choice}]"
                raise Refused(at, given, "cards are not chosen so; use a node selector instead")
        if offline:
            told[names.GPU_CLASS_ANNOTATION] = "offline"
        told |= _hami(pod)
    meta["annotations"] = told


def _hami(pod: Json) -> dict[str, str]:
    found: dict[str, str] = {}
    for container in pod["spec"].get("containers") or []:
        for one in container.get("env") or []:
            if one.get("name") == "GPU_CORE_UTILIZATION_POLICY":
                given = str(one.get("value", "default")).lower()
                if given not in _POLICIES:
                    at = "spec.containers.env[GPU_CORE_UTILIZATION_POLICY]"
                    raise Refused(at, given, f"it is one of {', '.join(_POLICIES)}")
                found[names.GPU_POLICY_ANNOTATION] = _POLICIES[given]
    return found
