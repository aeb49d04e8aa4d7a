"""Whether the amounts that objects of the input state can be counted."""

from __future__ import annotations

from collections.abc import Mapping

from lockstep.api import quantity
from lockstep.api.core import Node, PodSpec

MOST = 1 << 53
"""Of anything; thousandths of it still fit into 64 bits."""


class BadAmount(ValueError):
    """An amount of a field that cannot be counted; the message names both and the remedy."""


def check_node(node: Node) -> None:
    """Refuse a node whose amounts cannot be counted.

    Raises:
        BadAmount: for the first of them.
    """
    _check("status.allocatable", node.status.allocatable)


def check_pod(spec: PodSpec) -> None:
    """Refuse a pod whose amounts cannot be counted.

    Raises:
        BadAmount: for the first of them.
    """
    _check("spec.overhead", spec.overhead)
    for field, containers in (
        ("containers", spec.containers),
        ("initContainers", spec.init_containers),
    ):
        for number, container in enumerate(containers):
            at = f"spec.{field}[{number}].resources"
            _check(f"{at}.requests", container.resources.requests)
            _check(f"{at}.limits", container.resources.limits)


def _check(field: str, amounts: Mapping[str, str | int | float]) -> None:
    for name, amount in amounts.items():
        try:
            found = quantity.parse(str(amount))
        except ValueError as error:
            raise BadAmount(f"{field}[{name}]: {error}") from None
        if not 0 <= found <= MOST:
            raise BadAmount(f"{field}[{name}]: {amount} is too much or too little; write 0 to 8Pi")
