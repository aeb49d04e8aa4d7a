"""Which cluster and namespace a command is about, and which options say it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated


@dataclass(frozen=True, slots=True, init=False)
class Only:
    """The fields of a group that a command takes."""

    names: tuple[str, ...]

    def __init__(self, *names: str) -> None:
        object.__setattr__(self, "names", names)


Kubeconfig = Annotated[
    Path | None, "Which API server; by default $KUBECONFIG, then that of `lockstep up`."
]


@dataclass(frozen=True, slots=True)
class Target:
    """Which cluster and namespace the user means."""

    kubeconfig: Kubeconfig = None
    context: Annotated[str | None, "Context of the kubeconfig."] = None
    namespace: Annotated[
        str | None, "--namespace", "-n", "Namespace; that of the context by default."
    ] = None
    all_namespaces: Annotated[bool, "--all-namespaces", "-A", "In every namespace."] = False
