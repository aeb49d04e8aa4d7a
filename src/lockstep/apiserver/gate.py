"""Who makes a request, and whether they may: authentication, impersonation, RBAC."""

from __future__ import annotations

from collections.abc import Callable

from lockstep.apiserver.auth.access import require
from lockstep.apiserver.auth.authenticate import Authenticator
from lockstep.apiserver.auth.identity import User
from lockstep.apiserver.auth.impersonation import effective_user
from lockstep.apiserver.auth.rbac import Rbac
from lockstep.apiserver.auth.rules import Attributes
from lockstep.apiserver.routes import Route
from lockstep.apiserver.store import Key, Store
from lockstep.http import Request


class Gate:
    """Lets requests pass that their users may make."""

    def __init__(self, authenticator: Authenticator, clock: Callable[[], float]) -> None:
        self.authenticator = authenticator
        self.rbac = Rbac()
        self._clock = clock

    def identify(self, request: Request) -> User:
        """Return whom *request* acts as.

        Raises:
            StatusError: when a credential is wrong or missing, or may not be impersonated.
        """
        headers = request.headers
        user = self.authenticator.identify(
            request.peer.certificate, headers.get("authorization"), request.path, self._clock()
        )
        return effective_user(self.rbac, user, headers)

    def require_path(self, user: User, request: Request) -> None:
        """Let a request that is for no resource pass.

        Raises:
            StatusError: when the user may not make it.
        """
        verb = {"HEAD": "get"}.get(request.method, request.method.lower())
        require(self.rbac, user, Attributes(verb=verb, path=request.path))

    def require(self, user: User, verb: str, route: Route, name: str = "") -> None:
        """Let a request for a resource pass.

        Raises:
            StatusError: when the user may not make it.
        """
        wish = Attributes(
            verb=verb,
            group=route.group,
            version=route.version,
            resource=route.plural,
            subresource=route.subresource,
            # A namespace is looked at from within: those with rights inside may read it.
            namespace=route.namespace or (route.name if route.plural == "namespaces" else ""),
            name=route.name or name,
        )
        require(self.rbac, user, wish)


def uid_of(store: Store) -> Callable[[str, str, str, str], bool]:
    """Return the test whether an object is there and still has that uid."""

    def still_there(plural: str, namespace: str, name: str, uid: str) -> bool:
        record = store.get(Key(plural, namespace, name))
        return record is not None and record.meta.uid == uid

    return still_there
