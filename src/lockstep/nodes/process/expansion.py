"""``$(VAR)`` in commands, arguments and values, as Kubernetes expands it."""

from __future__ import annotations

import re
from collections.abc import Mapping

_REFERENCE = re.compile(r"\$(\$|\([^)]*\))")


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Return *text* with ``$(NAME)`` replaced; ``$$`` is a dollar, unknown names stay."""

    def replace(match: re.Match[str]) -> str:
        if match[1] == "$":
            return "$"
        return variables.get(match[1][1:-1], match[0])

    return _REFERENCE.sub(replace, text)
