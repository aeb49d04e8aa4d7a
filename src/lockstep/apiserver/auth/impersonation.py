"""Acting as another user, for those who may."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote

from lockstep.apiserver.auth.access import require
from lockstep.apiserver.auth.identity import (
    ANONYMOUS,
    AUTHENTICATED,
    UNAUTHENTICATED,
    User,
    split_service_account,
)
from lockstep.apiserver.auth.rbac import Rbac, impersonated_groups
from lockstep.apiserver.auth.rules import Attributes
from lockstep.apiserver.status import bad_request

_PREFIX: Final = "impersonate-"
_EXTRA: Final = "impersonate-extra-"
_AUTHENTICATION: Final = "authentication.k8s.io"


def effective_user(rbac: Rbac, user: User, headers: Mapping[str, str]) -> User:
    """Return whom a request acts as: its user, or whom its ``Impersonate-*`` headers name.

    Args:
        rbac: Who may impersonate whom.
        user: Who makes the request.
        headers: The request's headers by lower-case name; repeated ones joined by commas.

    Raises:
        StatusError: The user may not impersonate that (403), or no user name is given (400).
    """
    names = [key for key in headers if key.startswith(_PREFIX)]
    if not names:
        return user
    asked = {key: headers[key] for key in names}
    name = asked.get("impersonate-user", "")
    if not name:
        listed = ", ".join(map(json.dumps, _listed(asked.get("impersonate-group", ""))))
        raise bad_request(
            f'requested &user.DefaultInfo{{Name:"", UID:"", Groups:[]string{{{listed}}}, '
            "Extra:map[string][]string(nil)} without impersonating a user name"
        )
    groups = _listed(asked.get("impersonate-group", ""))
    uid = asked.get("impersonate-uid", "")
    extra = {
        unquote(key.removeprefix(_EXTRA)): _listed(value)
        for key, value in asked.items()
        if key.startswith(_EXTRA)
    }
    for wish in _wishes(name, groups, uid, extra):
        require(rbac, user, wish)
    all_groups = _completed(name, groups or list(impersonated_groups(name)))
    return User(name, tuple(dict.fromkeys(all_groups)), uid, extra)


def _listed(value: str) -> list[str]:
    return [part.strip() for part in value.split(",") if part.strip()]


def _wishes(
    name: str, groups: list[str], uid: str, extra: Mapping[str, list[str]]
) -> list[Attributes]:
    verb = "impersonate"
    account = split_service_account(name)
    if account is not None:
        wishes = [
            Attributes(verb, resource="serviceaccounts", namespace=account[0], name=account[1])
        ]
    else:
        wishes = [Attributes(verb, resource="users", name=name)]
    wishes += [Attributes(verb, resource="groups", name=group) for group in groups]
    if uid:
        wishes.append(Attributes(verb, _AUTHENTICATION, resource="uids", name=uid))
    for key, values in extra.items():
        wishes += [
            Attributes(verb, _AUTHENTICATION, resource="userextras", subresource=key, name=value)
            for value in values
        ]
    return wishes


def _completed(name: str, groups: list[str]) -> list[str]:
    if name == ANONYMOUS.name:
        return [*groups, UNAUTHENTICATED]
    if AUTHENTICATED in groups or UNAUTHENTICATED in groups:
        return groups
    return [*groups, AUTHENTICATED]
