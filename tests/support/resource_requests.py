"""Pods and what they ask for."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def resources(requests: Json | None = None, limits: Json | None = None) -> Json:
    return {k: v for k, v in (("requests", requests), ("limits", limits)) if v}


def pod(*containers: Json, **spec: Any) -> Json:
    named = [{"name": f"c{i}", "image": "x", "resources": one} for i, one in enumerate(containers)]
    return {"metadata": {"name": "p"}, "spec": {"containers": named, **spec}}
