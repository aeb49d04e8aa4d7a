"""Who makes a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
MASTERS: Final = "system:masters"
_SERVICE_ACCOUNT: Final = "system:serviceaccount:"


@dataclass(frozen=True, slots=True)
class User:
    """An identity: a name, the groups it belongs to, and what else its credential says."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict, hash=False)

    def to_object(self) -> dict[str, Any]:
        """Return the identity as ``UserInfo`` in reviews."""
        info: dict[str, Any] = {"username": self.name, "groups": list(self.groups)}
        if self.uid:
            info["uid"] = self.uid
        if self.extra:
            info["extra"] = {key: list(values) for key, values in self.extra.items()}
        return info


ANONYMOUS: Final = User("system:anonymous", (UNAUTHENTICATED,))


def authenticated(name: str, groups: Sequence[str] = (), **more: Any) -> User:
    """Return a user whose credential has been verified."""
    return User(name, tuple(dict.fromkeys((*groups, AUTHENTICATED))), **more)


def service_account(namespace: str, name: str, **more: Any) -> User:
    """Return the user that a service account is."""
    return authenticated(
        f"{_SERVICE_ACCOUNT}{namespace}:{name}", service_account_groups(namespace), **more
    )


def service_account_groups(namespace: str) -> tuple[str, str]:
    """Return the groups of every service account of a namespace."""
    return ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")


def split_service_account(user: str) -> tuple[str, str] | None:
    """Return namespace and name of the service account that a user name stands for, if it does."""
    if not user.startswith(_SERVICE_ACCOUNT):
        return None
    namespace, colon, name = user.removeprefix(_SERVICE_ACCOUNT).partition(":")
    return (namespace, name) if colon and namespace and name and ":" not in name else None


def from_certificate(certificate: Mapping[str, Any] | None) -> User | None:
    """Return the user that a verified client certificate names: CN, in the groups of its O.

    Args:
        certificate: As ``ssl.SSLSocket.getpeercert`` returns it; empty or ``None`` without one.
    """
    return _named_by(certificate.get("subject", ())) if certificate else None


# A connection's every request shows the same certificate.
@lru_cache(maxsize=1024)
def _named_by(subject: tuple[tuple[tuple[str, str], ...], ...]) -> User | None:
    name, groups = "", []
    for relative in subject:
        for key, value in relative:
            if key == "commonName":
                name = value
            elif key == "organizationName":
                groups.append(value)
    return authenticated(name, groups) if name else None
