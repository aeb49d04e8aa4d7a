"""What is the matter, with what, whose fault it is, how sure that is, and what to do."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from lockstep.api.wire import Wire

Class = Literal["user", "software", "hardware", "network", "storage", "platform", "unknown"]
Act = Literal[
    "stop_and_tell_user",
    "restart_in_place",
    "isolate_node",
    "reset_gpu",
    "pause_job",
    "observe",
]
LONGEST_LINE = 512
"""Characters of a line of evidence."""


class Place(Wire, frozen=True):
    """Where a fault is, as far as anything tells it."""

    nodes: list[str] = []
    ranks: list[int] = []
    devices: list[str] = []
    """As gpu/3 or nic/0, or the PCI address where that is all."""


class Diagnosis(Wire, frozen=True):
    """A verdict on a fault, with what it rests on."""

    class_: Class = field(default="unknown", name="class")
    cause: Annotated[str, Meta(description="What happened, or what is missing to tell it.")] = ""
    action: Annotated[str, Meta(description="What to do; one word, then a remark.")] = "observe"
    place: Place = Place()
    confidence: Annotated[float, Meta(ge=0, le=1, description="From 0 to 1.")] = 0.0
    evidence: Annotated[list[str], Meta(description="The lines that it rests on.")] = []
