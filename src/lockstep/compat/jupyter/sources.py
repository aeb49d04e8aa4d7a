"""elastic-jupyter-operator's kinds, as they are served."""

from __future__ import annotations

from typing import Final

from lockstep.compat.jupyter import kinds, translate
from lockstep.compat.translation import Source, translating, translating_with

SOURCES: Final = (
    Source(kinds.NOTEBOOK, translating(translate.notebook), translate.status_of),
    Source(kinds.GATEWAY, translating(translate.gateway), translate.status_of),
    Source(
        kinds.KERNEL_SPEC,
        translating_with(translate.kernel_spec),
        translate.status_of,
        reads=(kinds.KERNEL_TEMPLATE, kinds.GATEWAY),
    ),
    Source(kinds.KERNEL, translating(translate.kernel), translate.status_of),
)
