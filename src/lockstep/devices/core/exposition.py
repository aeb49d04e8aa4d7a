"""Readings as Prometheus text, with dcgm-exporter's labels and the pods' own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from lockstep.devices.core.fields import FIELDS, Field
from lockstep.devices.core.holders import Holder
from lockstep.devices.core.model import Card

Compat = Literal["", "dcgm3", "dcgm4.6"]
"""``dcgm3`` writes the label ``Hostname``, ``dcgm4.6`` the names of DCGM 4.6."""


@dataclass(frozen=True, slots=True)
class Use:
    """What one holder's processes used of a card: MiB, and hundredths of its SM time."""

    memory: float = 0.0
    sm: float = 0.0


@dataclass(frozen=True, slots=True)
class Shown:
    """One card, or one MIG device of it, with its readings and holders."""

    card: Card
    values: Mapping[str, float]
    holders: Sequence[Holder] = ()
    uses: Mapping[Holder, Use] = field(default_factory=dict)
    profile: str = ""
    instance: int = -1


def exposition(shown: Sequence[Shown], hostname: str, compat: Compat = "") -> bytes:
    """Return the text of ``/metrics``."""
    lines: list[str] = []
    series = [(one, _series(one, hostname, compat)) for one in shown]
    for about in FIELDS:
        body = [line for one, labels in series for line in _lines(about, one, labels)]
        if not body:
            continue
        for name in _names(about, compat):
            lines.append(f"# HELP {name} {about.help}\n# TYPE {name} {about.kind}\n")
            lines += [name + rest for rest in body]
    return "".join(lines).encode()


def _names(about: Field, compat: Compat) -> Iterator[str]:
    yield about.new if compat == "dcgm4.6" and about.new else about.name
    if about.old:
        yield about.old


@dataclass(frozen=True, slots=True)
class _Series:
    """The label texts of one card: alone, and by holder."""

    plain: str
    by_holder: tuple[str, ...]


def _series(one: Shown, hostname: str, compat: Compat) -> _Series:
    plain = _card_labels(one.card, one.profile, one.instance, hostname, compat)
    return _Series(plain, tuple(_holder_labels(plain, holder) for holder in one.holders))


def _lines(about: Field, one: Shown, labels: _Series) -> Iterator[str]:
    value = one.values.get(about.key)
    if value is None:
        return
    if len(one.holders) == 1:
        yield f"{{{labels.by_holder[0]}}} {_number(value)}\n"
    elif not one.holders:
        yield f"{{{labels.plain}}} {_number(value)}\n"
    elif not about.divisible:
        yield f'{{{labels.plain},divisible="false"}} {_number(value)}\n'
    else:
        parts = _split(about, value, one)
        for text, part in zip(labels.by_holder, parts, strict=True):
            yield f"{{{text}}} {_number(part)}\n"
        yield f'{{{labels.plain},pod=""}} {_number(max(0.0, value - sum(parts)))}\n'


def _split(about: Field, value: float, one: Shown) -> list[float]:
    """Return each holder's part of a reading; what no holder's process explains is the rest."""
    uses = [one.uses.get(holder, Use()) for holder in one.holders]
    if about.divisible == "memory":
        total = sum(use.memory for use in uses)
        scale = min(1.0, value / total) if total else 0.0
        return [use.memory * scale for use in uses]
    total = sum(use.sm for use in uses)
    return [value * use.sm / total if total else 0.0 for use in uses]


@lru_cache(maxsize=1024)
def _labels_of(
    about: tuple[str, ...], profile: str, instance: int, hostname: str, compat: Compat
) -> str:
    index, uuid, address, model, driver = about
    pairs = {
        "gpu": index,
        "UUID": uuid,
        "pci_bus_id": address,
        "device": f"nvidia{index}",
        "modelName": model,
    }
    if instance >= 0:
        pairs |= {"GPU_I_PROFILE": profile, "GPU_I_ID": str(instance)}
    pairs["Hostname" if compat == "dcgm3" else "hostname"] = hostname
    return _text(pairs | ({"DCGM_FI_DRIVER_VERSION": driver} if driver else {}))


def _card_labels(card: Card, profile: str, instance: int, hostname: str, compat: Compat) -> str:
    # dcgm-exporter writes eight digits of the PCI domain, in capitals.
    address = f"0000{card.pci}".upper() if len(card.pci) == len("0000:00:00.0") else card.pci
    about = (str(card.index), card.uuid, address, card.model, card.driver)
    return _labels_of(about, profile, instance, hostname, compat)


@lru_cache(maxsize=4096)
def _holder_labels(plain: str, holder: Holder) -> str:
    return f"{plain},{_text(holder.labels())}"


def _text(pairs: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in pairs.items())


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.6g}"
