"""Placeholders in runtimes: ``{{.Name}}`` and its like, as KServe has them."""

from __future__ import annotations

import re
from typing import Any, Final

from lockstep.compat.kserve.objects import InferenceService

_TEMPLATE: Final = re.compile(r"\{\{\s*\.(\w+)(?:\.([\w./-]+))?\s*\}\}")


def filled(tree: Any, service: InferenceService) -> Any:
    """Return *tree* with ``{{.Name}}`` and its like filled in."""
    if isinstance(tree, dict):
        return {key: filled(value, service) for key, value in tree.items()}
    if isinstance(tree, list):
        return [filled(value, service) for value in tree]
    if not isinstance(tree, str) or "{{" not in tree:
        return tree
    meta = service.metadata

    def value(match: re.Match[str]) -> str:
        name, key = match[1], match[2]
        plain = {"Name": meta.name, "Namespace": meta.namespace}
        if name in plain and key is None:
            return plain[name]
        maps = {"Annotations": meta.annotations, "Labels": meta.labels}
        return maps.get(name, {}).get(key or "", "")

    return _TEMPLATE.sub(value, tree)
