"""What a REST resource is called and which view it is read through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from lockstep.api.wire import Wire

T = TypeVar("T", bound=Wire)


@dataclass(frozen=True, slots=True)
class Resource(Generic[T]):
    """One resource of the API server and the view that its objects are decoded into."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    type: type[T]

    @property
    def api_version(self) -> str:
        """Return ``group/version``, or the version alone for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(
        self, namespace: str | None = None, name: str | None = None, subresource: str | None = None
    ) -> str:
        """Return the URL path of the collection, of one object, or of its subresource.

        Without *namespace* a namespaced collection spans all namespaces.
        """
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = [root]
        if self.namespaced and namespace:
            parts.append(f"namespaces/{namespace}")
        parts.append(self.plural)
        if name:
            parts.append(name)
        if subresource:
            parts.append(subresource)
        return "/".join(parts)
