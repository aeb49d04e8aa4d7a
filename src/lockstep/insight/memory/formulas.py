"""Memory of a transformer's training step on one GPU, by formulas: milliseconds, no run. Pure.

Sources: Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models"
(arXiv 2205.05198) for activations; Rajbhandari et al., "ZeRO" (arXiv 1910.02054) for states.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from math import ceil
from typing import Annotated, Final, Literal

Precision = Literal["fp32", "mixed", "bf16"]
Optimizer = Literal["adam", "adam8bit", "sgd", "momentum", "adafactor"]
Recompute = Literal["none", "selective", "full"]

GIB: Final = 2**30
CONTEXT_BYTES: Final = GIB
"""What a CUDA context and the libraries' workspaces take, roughly; not measured on each GPU."""
FRAGMENTED: Final = (0.03, 0.10)
"""Part of the allocated memory that the caching allocator holds beyond it: likely, and at most."""

WEIGHT: Final[dict[Precision, int]] = {"fp32": 4, "mixed": 2, "bf16": 2}
GRADIENT: Final[dict[Precision, int]] = {"fp32": 4, "mixed": 2, "bf16": 2}
MASTER: Final[dict[Precision, int]] = {"fp32": 0, "mixed": 4, "bf16": 0}
"""Bytes for each parameter; mixed precision keeps a copy in fp32 beside the weights."""
STATE: Final[dict[Optimizer, float]] = {
    "adam": 8,
    "adam8bit": 2,
    "sgd": 0,
    "momentum": 4,
    "adafactor": 0.02,
}
"""Bytes of optimizer state for each parameter; in pure bf16 it is kept in bf16, half of it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A training step: the model, the batch of one GPU, and how it is split over GPUs.

    The strings describe the options of ``lockstep estimate``.
    """

    params: Annotated[float, "Parameters of the whole model, such as 7e9."] = 0.0
    layers: Annotated[int, "Layers; a usual number by default."] = 0
    hidden: Annotated[int, "Width; a usual one by default."] = 0
    heads: Annotated[int, "Attention heads; one for each 128 of width by default."] = 0
    vocab: Annotated[int, "Words; 32000 by default."] = 0
    sequence: Annotated[int, "Tokens of a sample."] = 2048
    batch: Annotated[int, "Samples of a micro-batch on one GPU."] = 1
    precision: Annotated[Precision, "Numbers."] = "mixed"
    optimizer: Annotated[Optimizer, "Optimizer."] = "adam"
    recompute: Annotated[Recompute, "Activations to compute again in the backward pass."] = "none"
    flash: Annotated[bool, "Attention without stored scores."] = True
    zero: Annotated[int, "ZeRO stage, 0 to 3; FSDP is 3."] = 0
    data: Annotated[int, "Data-parallel ranks."] = 1
    tensor: Annotated[int, "Tensor-parallel ranks."] = 1
    pipeline: Annotated[int, "Pipeline stages."] = 1
    context: Annotated[int, "Context-parallel ranks."] = 1
    sequence_parallel: Annotated[
        bool, "--sequence-parallel", "Split the work that all tensor ranks would repeat."
    ] = False


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes on the fullest GPU, by what they are for."""

    parameters: float
    gradients: float
    optimizer: float
    activations: float
    logits: float
    communication: float
    context: float = CONTEXT_BYTES

    @property
    def allocated(self) -> float:
        """Return the bytes of all tensors at the peak."""
        tensors = (self.parameters, self.gradients, self.optimizer, self.activations)
        return sum(tensors) + self.logits + self.communication

    @property
    def likely(self) -> float:
        """Return the bytes that the GPU has in use, with a usual fragmentation."""
        return self.allocated * (1 + FRAGMENTED[0]) + self.context

    @property
    def most(self) -> float:
        """Return the bytes with bad fragmentation: what a card should have."""
        return self.allocated * (1 + FRAGMENTED[1]) + self.context

    def parts(self) -> dict[str, float]:
        """Return the bytes by name."""
        return {one.name: getattr(self, one.name) for one in fields(self)}


def problems(plan: Plan) -> list[str]:
    """Return what is wrong with *plan*, each with its field, value and remedy."""
    found = []
    if not 1 <= plan.params <= 1e15:
        found.append(f"params: given {plan.params:g}; must be between 1 and 1e15, such as 7e9")
    for name in ("sequence", "batch", "data", "tensor", "pipeline", "context"):
        if getattr(plan, name) < 1:
            found.append(f"{name}: given {getattr(plan, name)}; must be at least 1")
    if plan.zero not in (0, 1, 2, 3):
        found.append(f"zero: given {plan.zero}; must be 0, 1, 2 or 3")
    for name in ("layers", "hidden", "heads", "vocab"):
        if getattr(plan, name) < 0:
            found.append(f"{name}: given {getattr(plan, name)}; must not be negative")
    if plan.layers and plan.pipeline > plan.layers:
        found.append(f"pipeline: given {plan.pipeline}; must not exceed the {plan.layers} layers")
    if plan.heads and plan.heads % plan.tensor:
        found.append(f"tensor: given {plan.tensor}; must divide the {plan.heads} heads")
    return found


def completed(plan: Plan) -> Plan:
    """Return *plan* with a usual shape where it names none: 128 to a head, 12 h² to a layer."""
    layers, hidden = plan.layers, plan.hidden
    if not hidden and not layers:
        # Published models have about 128 times as many columns as layers.
        layers = max(1, round((plan.params / (12 * 128**2)) ** (1 / 3)))
    if not hidden:
        hidden = max(64, 64 * round((plan.params / (12 * layers)) ** 0.5 / 64))
    if not layers:
        layers = max(1, round(plan.params / (12 * hidden**2)))
    heads = plan.heads or max(plan.tensor, ceil(hidden / 128))
    heads = plan.tensor * ceil(heads / plan.tensor) if not plan.heads else heads
    return replace(plan, layers=layers, hidden=hidden, heads=heads, vocab=plan.vocab or 32_000)


def estimate(plan: Plan) -> Memory:
    """Return the memory of *plan* on its fullest GPU.

    Raises:
        ValueError: when the plan contradicts itself; the message names each field.
    """
    wrong = problems(plan)
    if wrong:
        raise ValueError("; ".join(wrong))
    plan = completed(plan)
    own = plan.params / plan.tensor / plan.pipeline
    split = plan.data * plan.context
    state = STATE[plan.optimizer] * (0.5 if plan.precision == "bf16" else 1)
    weights = own * WEIGHT[plan.precision] / (split if plan.zero == 3 else 1)
    gradients = own * GRADIENT[plan.precision] / (split if plan.zero >= 2 else 1)
    kept = own * (state + MASTER[plan.precision]) / (split if plan.zero >= 1 else 1)
    return Memory(
        parameters=weights,
        gradients=gradients,
        optimizer=kept,
        activations=_activations(plan),
        logits=_logits(plan),
        communication=_buffers(plan, own),
    )


def layer_bytes(plan: Plan) -> float:
    """Return the bytes of activations that one layer keeps for one micro-batch.

    The plan must name layers, hidden and heads.
    """
    tokens = plan.sequence / plan.context * plan.batch
    unit = tokens * plan.hidden
    t = plan.tensor
    if plan.recompute == "full":
        return 2 * unit * _width(plan)
    scores = 0.0
    if plan.recompute == "none" and not plan.flash:
        scores = 5 * plan.heads * plan.sequence / plan.hidden / t
    replicated = 10 / (t if plan.sequence_parallel else 1)
    return unit * (replicated + 24 / t + scores) * _width(plan)


def _width(plan: Plan) -> float:
    # The formulas are for 2 bytes an element.
    return 2.0 if plan.precision == "fp32" else 1.0


def _activations(plan: Plan) -> float:
    """The first of p stages holds p micro-batches of its layers: those of the whole model."""
    layers = ceil(plan.layers / plan.pipeline) * plan.pipeline
    kept = layer_bytes(plan) * layers
    if plan.recompute == "full":
        kept += layer_bytes(replace(plan, recompute="none"))
    return kept


def _logits(plan: Plan) -> float:
    """The last stage keeps the logits, and once more in fp32 for the loss, with their gradient."""
    if plan.pipeline > 1:
        return 0.0  # the first stage is the fullest
    tokens = plan.sequence / plan.context * plan.batch
    return tokens * plan.vocab * (4 + WEIGHT[plan.precision]) / plan.tensor


def _buffers(plan: Plan, own: float) -> float:
    if plan.data * plan.context == 1:
        return 0.0
    if plan.zero == 3:
        # The layer in use and the one being fetched are whole.
        return 2 * own / max(1, plan.layers / plan.pipeline) * WEIGHT[plan.precision]
    return 2 * 25 * 2**20  # two of DistributedDataParallel's buckets


def remedies(plan: Plan, card: float) -> list[tuple[str, Memory]]:
    """Return changes after which *plan* fits *card* bytes, the least disturbing first."""
    gpus = plan.data * plan.context
    tries: list[tuple[str, Plan]] = [("--flash", replace(plan, flash=True))]
    tries += [
        (f"--recompute {kind}", replace(plan, recompute=kind)) for kind in ("selective", "full")
    ]
    if gpus > 1:
        tries += [(f"--zero {stage}", replace(plan, zero=stage)) for stage in (1, 2, 3)]
        full = replace(plan, zero=3, recompute="full")
        tries.append(("--zero 3 --recompute full", full))
    tries.append(("--optimizer adam8bit", replace(plan, optimizer="adam8bit")))
    size = plan.batch
    while size > 1:
        size //= 2
        tries.append((f"--batch {size}", replace(plan, batch=size)))
    for split in (2, 4, 8):
        more = replace(plan, tensor=plan.tensor * split, sequence_parallel=True)
        tries.append((f"--tensor {more.tensor} --sequence-parallel", more))
    for shards in (8, 16, 64, 256):
        if shards > gpus:
            full = replace(plan, zero=3, recompute="full", data=shards)
            tries.append((f"--zero 3 --recompute full --data {shards}", full))
    found = [(words, estimate(one)) for words, one in tries if one != plan and not problems(one)]
    return [(words, memory) for words, memory in found if memory.most <= card][:3]
