"""How the ranks of a job are split, and what that makes them say to each other."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from lockstep.api.containers import Quantity
from lockstep.api.wire import Wire

Degree = Annotated[int, Meta(ge=1)]

AXES: Final = {
    "tp": "tensor",
    "cp": "context",
    "ep": "expert",
    "dp": "data",
    "pp": "pipeline",
}
"""The axes by the names that ``order`` uses, with the fields that hold their degrees."""
MEGATRON_ORDER: Final = "tp-cp-ep-dp-pp"
"""The order in which Megatron numbers ranks, the axis that varies fastest first."""


class Model(Wire, frozen=True):
    """What the model's size says about the bytes that ranks exchange in a step."""

    parameters: Quantity = "70G"
    """Parameters in all, such as 70G."""
    expert_parameters: Quantity = 0
    """Parameters of experts, part of all."""
    layers: Annotated[int, Meta(ge=1)] = 80
    """Transformer layers."""
    expert_layers: Degree | None = None
    """Layers with experts; all of them when left out."""
    experts_per_token: Annotated[int, Meta(ge=1)] = 2
    """Experts that a token visits."""
    hidden: Annotated[int, Meta(ge=1)] = 8192
    """Hidden size."""
    key_value_hidden: Degree | None = None
    """Size of keys and of values of a token; the hidden size when left out."""
    sequence: Annotated[int, Meta(ge=1)] = 4096
    """Tokens in a sequence."""
    micro_batch: Annotated[int, Meta(ge=1)] = 1
    """Sequences in a micro-batch."""
    micro_batches: Annotated[int, Meta(ge=1)] = 16
    """Micro-batches in a step, for each data-parallel rank."""
    activation_bytes: Annotated[int, Meta(ge=1)] = 2
    """Bytes of an activation."""
    gradient_bytes: Annotated[int, Meta(ge=1)] = 4
    """Bytes of a gradient."""
    sharded: bool = False
    """Whether parameters are sharded over data-parallel ranks (ZeRO-3, FSDP)."""


class Parallelism(Wire, frozen=True):
    """How the ranks are split; their product divides the world size."""

    tensor: Degree = 1
    pipeline: Degree = 1
    data: Degree | None = None
    """What is left of the world size when left out."""
    context: Degree = 1
    expert: Degree = 1
    order: Annotated[str, Meta(pattern="^(tp|cp|ep|dp|pp)(-(tp|cp|ep|dp|pp)){0,4}$")] = (
        MEGATRON_ORDER
    )
    """How ranks are numbered, the axis that varies fastest first; axes of degree 1 may be left out.
    """
    model: Model | None = None
    """Model whose traffic the ranks are laid out for; a large one by default."""

    def axes(self) -> tuple[str, ...]:
        """Return the order's axes, with those left out at its end.

        Raises:
            ValueError: when an axis is there twice, or one of a degree above 1 is left out.
        """
        named = self.order.split("-")
        if len(set(named)) < len(named):
            raise ValueError(f"order {self.order} names an axis twice")
        missing = [axis for axis in AXES if axis not in named]
        lost = [axis for axis in missing if axis != "dp" and (getattr(self, AXES[axis]) or 1) > 1]
        if lost:
            raise ValueError(f"order {self.order} leaves out {', '.join(lost)}")
        return (*named, *missing)

    @property
    def stated(self) -> bool:
        """Return whether the job says anything about how its ranks are split."""
        return self.data is not None or any(
            getattr(self, field) > 1 for field in AXES.values() if field != "data"
        )
