"""What programs of other systems read of their share from their environment."""

from __future__ import annotations

from collections.abc import Sequence


def variables(
    dialect: str, *, memory: int, compute: int, cards: Sequence[int], card_memory: int, pod: int
) -> dict[str, str]:
    """Return the variables of a container that was written in a system's words.

    *memory* is what it has of each card and *pod* what its pod has, in MiB; *card_memory* is what
    a card has; *cards* are their indices on the node.
    """
    if dialect == "hami":
        limits = {f"CUDA_DEVICE_MEMORY_LIMIT_{i}": f"{memory}m" for i in range(len(cards))}
        found = limits if memory else {}
        return {**found, "CUDA_DEVICE_SM_LIMIT": str(compute)} if compute else found
    if dialect == "gpushare":
        return {
            "ALIYUN_COM_GPU_MEM_IDX": ",".join(map(str, cards)),
            "ALIYUN_COM_GPU_MEM_POD": str(pod),
            "ALIYUN_COM_GPU_MEM_CONTAINER": str(memory),
            "ALIYUN_COM_GPU_MEM_DEV": str(card_memory),
        }
    return {}
