"""Answers without what must differ: uids, times, versions."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.support.apiserver import Answer

_UNLIKE = {"uid": "UID", "resourceVersion": "VERSION", "time": "TIME"}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def normal(answer: Answer) -> dict[str, Any]:
    """Return an answer's status and body in a form that two servers can share."""
    try:
        body = _tree(json.loads(answer.body))
    except ValueError:
        body = answer.body.decode(errors="replace")
    return {"status": answer.status, "body": body}


def _tree(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {k: _tree(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [_tree(one) for one in value]
    if isinstance(value, str):
        return _UNLIKE.get(key) or _UID.sub("UID", _TIME.sub("TIME", value))
    return value


def differences(ours: Any, theirs: Any, at: str = "") -> list[str]:
    """Return where two trees differ, and how."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        keys = sorted({*ours, *theirs})
        return [
            found
            for key in keys
            for found in differences(
                ours.get(key, "(absent)"), theirs.get(key, "(absent)"), f"{at}.{key}"
            )
        ]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = enumerate(zip(ours, theirs, strict=True))
        return [d for i, (a, b) in pairs for d in differences(a, b, f"{at}[{i}]")]
    return [] if ours == theirs else [f"{at}: {ours!r} instead of {theirs!r}"]
