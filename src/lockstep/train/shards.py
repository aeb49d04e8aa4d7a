"""Tensors of which a rank holds a part alone, as FSDP2 makes them (DTensor): which part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Chunk:
    """The part of a tensor that a rank holds."""

    size: tuple[int, ...]
    """Of the whole tensor."""
    at: tuple[int, ...]
    shape: tuple[int, ...]
    owner: bool
    """Whether of several ranks with this part this one is to save it."""


def is_sharded(tensor: Tensor) -> bool:
    """Say whether *tensor* is spread over ranks."""
    return type(tensor) is not Tensor and hasattr(tensor, "to_local")


def local(tensor: Tensor) -> Tensor:
    """Return what this rank holds of *tensor*."""
    part: Tensor = getattr(tensor, "to_local")() if is_sharded(tensor) else tensor  # noqa: B009
    return part


def chunk(tensor: Tensor) -> Chunk | None:
    """Return where this rank's part of *tensor* lies; None for a tensor that it has as a whole."""
    if not is_sharded(tensor):
        return None
    from torch.distributed.tensor import DTensor
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

    if not isinstance(tensor, DTensor):
        return None
    mesh, placements = tensor.device_mesh, tensor.placements
    shape, at = compute_local_shape_and_global_offset(tensor.shape, mesh, placements)
    coordinate = mesh.get_coordinate() or [0] * len(placements)
    copies = [c for c, p in zip(coordinate, placements) if p.is_replicate()]
    return Chunk(tuple(tensor.shape), tuple(at), tuple(shape), not any(copies))


def like(template: Tensor, part: Tensor) -> Tensor:
    """Return *part* as this rank's part of a tensor that is spread as *template* is."""
    from torch.distributed.tensor import DTensor

    if not isinstance(template, DTensor):
        return part
    made: Tensor = DTensor.from_local(
        part,
        template.device_mesh,
        template.placements,
        run_check=False,
        shape=template.shape,
        stride=template.stride(),
    )
    return made


def prepare(part: Any) -> None:
    """Give an optimizer that has not stepped yet the state that tells how it is spread."""
    if isinstance(part, torch.optim.Optimizer):
        from torch.distributed.checkpoint.state_dict import _init_optim_state

        _init_optim_state(part)


def overlap(
    at: tuple[int, ...], shape: tuple[int, ...], other_at: list[int], other_shape: list[int]
) -> tuple[tuple[slice, ...], tuple[slice, ...]] | None:
    """Return the common part of two chunks of one tensor, as slices of the first and the second."""
    mine, theirs = [], []
    for a, n, b, m in zip(at, shape, other_at, other_shape):
        start, end = max(a, b), min(a + n, b + m)
        if start >= end:
            return None
        mine.append(slice(start - a, end - a))
        theirs.append(slice(start - b, end - b))
    return tuple(mine), tuple(theirs)
