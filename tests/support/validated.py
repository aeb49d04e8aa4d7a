"""What the server says of an object, and the words of upstream for names."""

import copy
from typing import Any

from lockstep.apiserver.builtin import BUILTINS, Kind

Json = dict[str, Any]
KINDS = {(k.group, k.kind): k for k in BUILTINS}


def said(kind: Kind, new: Json, old: Json | None = None) -> list[str]:
    """Return what is said of *new* once it has its defaults."""
    new, before = copy.deepcopy(new), copy.deepcopy(old)
    meta = {"name": "x", **({"namespace": "n"} if kind.namespaced else {})}
    for obj in (new, before):
        if obj is not None:
            obj["metadata"] = {**meta, **obj.get("metadata", {})}
            obj.setdefault("kind", kind.kind)
            kind.prepare(obj, None)
            if old is None:
                kind.begin(obj)
    return [str(cause) for cause in kind.validate(new, before)]
