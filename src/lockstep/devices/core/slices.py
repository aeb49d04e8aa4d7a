"""A node's cards as the ResourceSlice that claims are allocated from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from lockstep.api.claims import DRA_GROUP, DRIVER, INDEX
from lockstep.api.wire import Json
from lockstep.devices.core.model import Card, Inventory
from lockstep.devices.core.stated import family, gpu_cards

STANDARD: Final = "resource.kubernetes.io"
"""The domain of the attributes that all drivers share, so that claims can match across them."""
UNHEALTHY: Final = f"{DRIVER}/unhealthy"
MOST: Final = 64
"""Devices of one slice, as upstream bounds those with taints."""
_LONGEST: Final = 64
_ODD: Final = re.compile(r"[^a-z0-9-]+")
_NO_VALUE: Final = re.compile(r"[^A-Za-z0-9._-]+")


def device_name(card: Card) -> str:
    """Return what a card is called in slices: by its identity, for indices change."""
    return _ODD.sub("-", (card.uuid or card.pci or f"gpu-{card.index}").lower())[:63].strip("-")


def by_name(found: Inventory) -> dict[str, Card]:
    """Return the cards that claims can have, by their names in slices."""
    return {device_name(card): card for card in gpu_cards(found)}


def slice_name(node: str) -> str:
    """Return the name of a node's slice."""
    return f"{node}-{DRIVER}"


def slice_of(node: str, uid: str, found: Inventory) -> Json:
    """Return the node's slice; the Node *uid* owns it."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid, "controller": True}
    return {
        "apiVersion": f"{DRA_GROUP}/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": slice_name(node), "ownerReferences": [owner]},
        "spec": spec_of(node, found),
    }


def spec_of(node: str, found: Inventory) -> Json:
    """Return the spec of a node's slice."""
    return {
        "driver": DRIVER,
        "nodeName": node,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
        "devices": [_device(card) for card in gpu_cards(found)[:MOST]],
    }


def class_of() -> Json:
    """Return the DeviceClass of the cards."""
    expression = f"device.driver == '{DRIVER}'"
    return {
        "apiVersion": f"{DRA_GROUP}/v1",
        "kind": "DeviceClass",
        "metadata": {"name": DRIVER},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }


def _device(card: Card) -> Json:
    device: Json = {"name": device_name(card), "attributes": _attributes(card)}
    if card.memory:
        device["capacity"] = {"memory": {"value": f"{card.memory}Mi"}}
    if card.trouble:
        value = _NO_VALUE.sub("-", card.trouble)[:63].strip("-._")
        device["taints"] = [{"key": UNHEALTHY, "value": value, "effect": "NoSchedule"}]
    return device


def _attributes(card: Card) -> dict[str, Mapping[str, Any]]:
    """Return what is known of a card; what nothing tells is left out."""
    texts = {
        "type": "gpu",
        "uuid": card.uuid,
        "vendor": card.vendor,
        "productName": card.model,
        "architecture": family(card.compute),
        "fabric": card.fabric,
        f"{STANDARD}/pcieRoot": card.root,
        f"{STANDARD}/pciBusID": card.pci,
    }
    versions = {
        "cudaComputeCapability": card.compute,
        "driverVersion": card.driver,
        "cudaDriverVersion": card.cuda,
    }
    found: dict[str, Mapping[str, Any]] = {INDEX: {"int": card.index}}
    found |= {name: {"string": text[:_LONGEST]} for name, text in texts.items() if text}
    for name, text in versions.items():
        if version := _version(text):
            found[name] = {"version": version}
    if card.numa >= 0:
        found["numaNode"] = found[f"{STANDARD}/numaNode"] = {"int": card.numa}
    return found


def _version(text: str) -> str:
    """Return a version as semver wants it: ``9.0`` is ``9.0.0``, ``570.86.10`` stays."""
    parts = re.findall(r"\d+", text)[:3]
    return ".".join(str(int(one)) for one in [*parts, "0", "0"][:3]) if parts else ""
