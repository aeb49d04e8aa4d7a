"""Role-based access control, evaluated over an index that events keep up to date."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from lockstep.api.meta import LabelSelector
from lockstep.api.selectors import LabelMatch, SelectorError, from_selector
from lockstep.api.wire import Json
from lockstep.apiserver.auth.identity import (
    MASTERS,
    User,
    service_account_groups,
    split_service_account,
)
from lockstep.apiserver.auth.rules import Attributes, Rule

GROUP: Final = "rbac.authorization.k8s.io"
_NOWHERE: Final = "?"
_MAX_DECISIONS: Final = 50_000
_EVERYTHING: Final = (Rule(*[frozenset({"*"})] * 3), Rule(frozenset({"*"}), urls=frozenset({"*"})))


@dataclass(frozen=True, slots=True)
class _Role:
    rules: tuple[Rule, ...]
    labels: Mapping[str, str]
    aggregates: tuple[LabelMatch, ...] = ()


@dataclass(frozen=True, slots=True)
class _Binding:
    role: tuple[str, str]
    subjects: frozenset[str]


class Rbac:
    """Roles and bindings, and the decisions that follow from them.

    A decision is remembered until a role or a binding changes, so that a request costs a lookup.
    """

    def __init__(self) -> None:
        self._roles: dict[tuple[str, str], _Role] = {}
        self._bindings: dict[tuple[str, str], _Binding] = {}
        self._by_subject: dict[tuple[str, str], set[tuple[str, str]]] = {}
        self._decisions: dict[tuple[Any, ...], bool | frozenset[str]] = {}
        self._effective: dict[tuple[User, str], tuple[Rule, ...]] = {}

    def put(self, plural: str, obj: Json) -> None:
        """Take note of a role or a binding that was created or changed."""
        metadata = obj.get("metadata") or {}
        place = (metadata.get("namespace", ""), metadata["name"])
        if plural in {"roles", "clusterroles"}:
            self._roles[place] = _read_role(obj, metadata)
        elif plural in {"rolebindings", "clusterrolebindings"}:
            self._unbind(place)
            self._bind(place, _read_binding(obj, place[0]))
        self._forget()

    def remove(self, plural: str, namespace: str, name: str) -> None:
        """Take note of a role or a binding that is gone."""
        if plural in {"roles", "clusterroles"}:
            self._roles.pop((namespace, name), None)
        elif plural in {"rolebindings", "clusterrolebindings"}:
            self._unbind((namespace, name))
        self._forget()

    def allows(self, user: User, wish: Attributes) -> bool:
        """Whether a user may do what a request wants."""
        if MASTERS in user.groups:
            return True
        place = (user.name, user.groups, wish.namespace, wish.verb, wish.group, wish.resource)
        question = (*place, wish.subresource, wish.path)
        decision = self._decisions.get(question)
        if decision is None:
            decision = self._decide(user, wish)
            if len(self._decisions) >= _MAX_DECISIONS:
                self._decisions.clear()
            self._decisions[question] = decision
        return decision if isinstance(decision, bool) else wish.name in decision

    def explain(self, user: User, wish: Attributes) -> tuple[bool, str]:
        """Return whether a user may do what a request wants, and by which binding."""
        if MASTERS in user.groups:
            return True, ""
        lost = []
        for place, subject in self._bindings_of(user, wish.namespace):
            binding = self._bindings[place]
            if binding.role not in self._roles:
                kind = "clusterrole" if not binding.role[0] else "role"
                lost.append(f'{kind}.{GROUP} "{binding.role[1]}" not found')
            if any(rule.allows(wish) for rule in self._rules_at(*binding.role)):
                return True, f"RBAC: allowed by {_describe(place, binding)} to {_shown(subject)}"
        if not lost:
            return False, ""
        return False, f"RBAC: {lost[0] if len(lost) == 1 else '[' + ', '.join(lost) + ']'}"

    def _bindings_of(self, user: User, namespace: str) -> Iterator[tuple[tuple[str, str], str]]:
        """Yield the bindings of a user, each once, with the subject that it is by."""
        subjects = [f"User:{user.name}", *(f"Group:{group}" for group in user.groups)]
        for scope in ("", namespace) if namespace else ("",):
            by: dict[tuple[str, str], str] = {}
            for subject in reversed(subjects):
                by |= dict.fromkeys(self._by_subject.get((scope, subject), ()), subject)
            yield from sorted(by.items())

    def rules_of(self, user: User, namespace: str) -> tuple[Rule, ...]:
        """Return every rule that a user has in a namespace (or, with none, everywhere)."""
        if MASTERS in user.groups:
            return _EVERYTHING
        known = self._effective.get((user, namespace))
        if known is None:
            known = tuple(dict.fromkeys(self._collect(user, namespace)))
            if len(self._effective) >= _MAX_DECISIONS:
                self._effective.clear()
            self._effective[(user, namespace)] = known
        return known

    def has_role(self, kind: str, name: str, namespace: str) -> bool:
        """Whether the role that a binding in a namespace refers to is there."""
        return _role_place(kind, name, namespace) in self._roles

    def role_rules(self, kind: str, name: str, namespace: str) -> tuple[Rule, ...]:
        """Return the rules of the role that a binding in a namespace refers to."""
        return self._rules_at(*_role_place(kind, name, namespace))

    def aggregated(self) -> Iterator[tuple[str, tuple[Rule, ...]]]:
        """Yield each cluster role that is made of others, with the rules that it should have."""
        for (namespace, name), role in self._roles.items():
            if role.aggregates and not namespace:
                rules = tuple(dict.fromkeys(self._aggregate(name, role)))
                if rules != role.rules:
                    yield name, rules

    def _decide(self, user: User, wish: Attributes) -> bool | frozenset[str]:
        """Decide for every name at once: whether, or for which names."""
        names: frozenset[str] = frozenset()
        for rule in self.rules_of(user, wish.namespace):
            if not rule.has_verb(wish.verb):
                continue
            if not wish.resource:
                if rule.has_url(wish.path):
                    return True
            elif rule.has_resource(wish.group, wish.resource, wish.subresource):
                if not rule.names:
                    return True
                names |= rule.names
        return names or False

    def _collect(self, user: User, namespace: str) -> Iterator[Rule]:
        for place, _ in self._bindings_of(user, namespace):
            yield from self._rules_at(*self._bindings[place].role)

    def _rules_at(self, namespace: str, name: str) -> tuple[Rule, ...]:
        role = self._roles.get((namespace, name))
        if role is None:
            return ()
        if role.aggregates:
            return tuple(dict.fromkeys(self._aggregate(name, role)))
        return role.rules

    def _aggregate(self, name: str, role: _Role, seen: frozenset[str] = frozenset()) -> list[Rule]:
        rules: list[Rule] = []
        visited = seen | {name}
        for (namespace, other), candidate in sorted(self._roles.items()):
            if namespace or other in visited:
                continue
            if any(selector.matches(candidate.labels) for selector in role.aggregates):
                if candidate.aggregates:
                    rules += self._aggregate(other, candidate, visited)
                else:
                    rules += candidate.rules
        return rules

    def _bind(self, place: tuple[str, str], binding: _Binding) -> None:
        self._bindings[place] = binding
        for subject in binding.subjects:
            self._by_subject.setdefault((place[0], subject), set()).add(place)

    def _unbind(self, place: tuple[str, str]) -> None:
        binding = self._bindings.pop(place, None)
        for subject in binding.subjects if binding else ():
            bound = self._by_subject[(place[0], subject)]
            bound.discard(place)
            if not bound:
                del self._by_subject[(place[0], subject)]

    def _forget(self) -> None:
        self._decisions.clear()
        self._effective.clear()


def _describe(place: tuple[str, str], binding: _Binding) -> str:
    namespace, name = place
    bound = f'RoleBinding "{name}/{namespace}"' if namespace else f'ClusterRoleBinding "{name}"'
    kind = "Role" if binding.role[0] else "ClusterRole"
    return f'{bound} of {kind} "{binding.role[1]}"'


def _shown(subject: str) -> str:
    kind, _, name = subject.partition(":")
    account = split_service_account(name)
    if kind == "User" and account is not None:
        return f'ServiceAccount "{account[1]}/{account[0]}"'
    return f'{kind} "{name}"'


def _read_role(obj: Json, metadata: Json) -> _Role:
    rules = tuple(map(Rule.from_object, obj.get("rules") or ()))
    aggregation = obj.get("aggregationRule") or {}
    selectors = _selectors(aggregation.get("clusterRoleSelectors") or ())
    return _Role(rules, metadata.get("labels") or {}, selectors)


def _selectors(selectors: Iterable[Json]) -> tuple[LabelMatch, ...]:
    """Compile selectors; one that cannot be read adds no rules, as it selects no role."""
    compiled = []
    for selector in selectors:
        try:
            compiled.append(from_selector(msgspec.convert(selector, LabelSelector)))
        except (SelectorError, msgspec.ValidationError):
            continue
    return tuple(compiled)


def _read_binding(obj: Json, namespace: str) -> _Binding:
    reference = obj.get("roleRef") or {}
    role = _role_place(reference.get("kind", ""), reference.get("name", ""), namespace)
    subjects = frozenset(
        _subject(subject, namespace) for subject in obj.get("subjects") or () if subject.get("name")
    )
    return _Binding(role, subjects)


def _role_place(kind: str, name: str, namespace: str) -> tuple[str, str]:
    """Return where a role stands; a place where none can be for what is not well formed."""
    if kind == "ClusterRole":
        return ("", name)
    return (namespace if kind == "Role" and namespace else _NOWHERE, name)


def _subject(subject: Json, namespace: str) -> str:
    if subject.get("kind") == "ServiceAccount":
        home = subject.get("namespace") or namespace
        return f"User:system:serviceaccount:{home}:{subject['name']}"
    return f"{subject.get('kind', '')}:{subject['name']}"


def impersonated_groups(name: str) -> tuple[str, ...]:
    """Return the groups that come with a user name by itself."""
    account = split_service_account(name)
    return service_account_groups(account[0]) if account else ()
