from __future__ import annotations

import uuid
from typing import Any

from lockstep.apiserver import metadata
from lockstep.apiserver.builtin import BUILTINS

POD = next(kind for kind in BUILTINS if kind.kind == "Pod")


def test_every_object_gets_a_random_uid_of_its_own() -> None:
    # More than one page of randomness has.
    objects: list[dict[str, Any]] = [{"metadata": {"name": str(n)}} for n in range(1000)]
    for obj in objects:
        metadata.begin(obj, POD, "default", 0.0)
    uids = [uuid.UUID(obj["metadata"]["uid"]) for obj in objects]
    assert len(set(uids)) == len(uids)
    assert {(uid.version, uid.variant) for uid in uids} == {(4, uuid.RFC_4122)}
