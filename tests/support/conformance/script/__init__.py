"""The requests that both servers are asked, in order; each begins where the last one ended."""

from __future__ import annotations

from typing import Final

from tests.support.conformance.script import (
    access,
    applying,
    crds,
    deleting,
    documents,
    errors,
    kinds,
    lists,
    objects,
    patches,
    pods,
    watches,
    workloads,
)
from tests.support.conformance.script.ask import Ask

SCRIPT: Final[tuple[Ask, ...]] = (
    *objects.SCRIPT,
    *errors.SCRIPT,
    *lists.SCRIPT,
    *patches.SCRIPT,
    *applying.SCRIPT,
    *watches.SCRIPT,
    *pods.SCRIPT,
    *workloads.SCRIPT,
    *kinds.SCRIPT,
    *crds.SCRIPT,
    *access.SCRIPT,
    *documents.SCRIPT,
    *deleting.SCRIPT,
)
