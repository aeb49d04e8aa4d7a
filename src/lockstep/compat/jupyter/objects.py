"""elastic-jupyter-operator's objects, as far as they are honoured."""

from __future__ import annotations

from typing import Any

from lockstep.api.wire import Json, Wire
from lockstep.compat.translation import Strict


class Resources(Wire, frozen=True):
    """What a container asks for."""

    limits: dict[str, Any] = {}
    requests: dict[str, Any] = {}

    @property
    def amounts(self) -> dict[str, str]:
        """Return the amounts by resource; a limit counts where there are both."""
        return {name: str(amount) for name, amount in {**self.requests, **self.limits}.items()}


class Reference(Wire, frozen=True):
    """Another object, by its name."""

    name: str = ""
    namespace: str = ""


class NotebookSpec(Strict, frozen=True):
    """A notebook server, and the gateway that has its kernels."""

    gateway: Reference | None = None
    resources: Json = {}
    auth: Json | None = None
    template: Json | None = None


class GatewaySpec(Wire, frozen=True):
    """Which kernels a gateway offers, and when it takes them away."""

    kernels: list[str] = []
    cull_idle_timeout: int | None = None


class Variable(Wire, frozen=True):
    """An environment variable."""

    name: str
    value: str = ""
    value_from: Json | None = None


class KernelSpecSpec(Wire, frozen=True):
    """A kernel that a gateway offers. Its launcher is the operator's own and is not run."""

    language: str = ""
    image: str = ""
    env: list[Variable] = []
    template: Json | None = None
    """A JupyterKernelTemplate by its name, or a pod template of its own."""


class KernelTemplateSpec(Wire, frozen=True):
    """A pod in which kernels run."""

    template: Json = {}


class Container(Wire, frozen=True):
    """The container of a kernel."""

    image: str = ""
    env: list[Variable] = []
    resources: Resources = Resources()
