"""RBAC rules: what one allows, and whether some together cover another."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from lockstep.api.wire import Json

ANY: Final = "*"


@dataclass(frozen=True, slots=True)
class Attributes:
    """What a request wants to do: a verb on a resource, or on a path that is none."""

    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def target(self) -> str:
        """The resource as rules name it: with its subresource."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a role."""

    verbs: frozenset[str]
    groups: frozenset[str] = frozenset()
    resources: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    urls: frozenset[str] = frozenset()
    stated: Mapping[str, Any] | None = field(default=None, compare=False, repr=False, kw_only=True)
    """The rule as it was written, in its order."""

    @classmethod
    def from_object(cls, rule: Mapping[str, Any]) -> Self:
        """Read a rule as it stands in a role."""
        return cls(
            verbs=frozenset(rule.get("verbs") or ()),
            groups=frozenset(rule.get("apiGroups") or ()),
            resources=frozenset(rule.get("resources") or ()),
            names=frozenset(rule.get("resourceNames") or ()),
            urls=frozenset(rule.get("nonResourceURLs") or ()),
            stated=rule,
        )

    def to_object(self) -> Json:
        """Return the rule as it stands in a review or a role."""
        parts = {
            "verbs": self.verbs,
            "apiGroups": self.groups,
            "resources": self.resources,
            "resourceNames": self.names,
            "nonResourceURLs": self.urls,
        }
        stated = self.stated or {}
        return {key: stated.get(key) or sorted(values) for key, values in parts.items() if values}

    def has_verb(self, verb: str) -> bool:
        """Whether the rule is about this verb."""
        return verb in self.verbs or ANY in self.verbs

    def has_resource(self, group: str, resource: str, subresource: str) -> bool:
        """Whether the rule is about this resource, for any verb and any object's name."""
        if group not in self.groups and ANY not in self.groups:
            return False
        if ANY in self.resources:
            return True
        if not subresource:
            return resource in self.resources
        return f"{resource}/{subresource}" in self.resources or f"*/{subresource}" in self.resources

    def has_url(self, path: str) -> bool:
        """Whether the rule is about this path."""
        if path in self.urls or ANY in self.urls:
            return True
        return any(url.endswith(ANY) and path.startswith(url.rstrip(ANY)) for url in self.urls)

    def allows(self, wish: Attributes) -> bool:
        """Whether the rule allows what a request wants to do."""
        if not self.has_verb(wish.verb):
            return False
        if not wish.resource:
            return self.has_url(wish.path)
        return self.has_resource(wish.group, wish.resource, wish.subresource) and (
            not self.names or wish.name in self.names
        )

    def atoms(self) -> Iterator[Rule]:
        """Yield the rule in rules of one verb, group, resource and name (or path) each."""
        for verb in self.verbs:
            one = frozenset({verb})
            for url in self.urls:
                yield Rule(one, urls=frozenset({url}))
            for group in self.groups:
                for resource in self.resources:
                    atom = Rule(one, frozenset({group}), frozenset({resource}))
                    if not self.names:
                        yield atom
                    for name in self.names:
                        yield replace(atom, names=frozenset({name}))

    def covers(self, atom: Rule) -> bool:
        """Whether this rule allows at least what an atom allows."""
        if not _within(atom.verbs, self.verbs):
            return False
        if atom.urls:
            return all(self._covers_url(url) for url in atom.urls)
        return (
            _within(atom.groups, self.groups)
            and all(self._covers_resource(resource) for resource in atom.resources)
            and (not self.names or (bool(atom.names) and atom.names <= self.names))
        )

    def _covers_resource(self, resource: str) -> bool:
        if resource in self.resources or ANY in self.resources:
            return True
        _, slash, subresource = resource.partition("/")
        return bool(slash) and f"*/{subresource}" in self.resources

    def _covers_url(self, url: str) -> bool:
        if url in self.urls or ANY in self.urls:
            return True
        return any(
            own.endswith(ANY) and url.rstrip(ANY).startswith(own.rstrip(ANY)) for own in self.urls
        )

    def __str__(self) -> str:
        names = (
            ("APIGroups", self.groups),
            ("Resources", self.resources),
            ("ResourceNames", self.names),
            ("NonResourceURLs", self.urls),
            ("Verbs", self.verbs),
        )
        parts = [f"{name}:{_listed(values)}" for name, values in names if values]
        return "{" + ", ".join(parts) + "}"


def _listed(values: Iterable[str]) -> str:
    return "[" + ", ".join(json.dumps(value) for value in sorted(values)) + "]"


def _within(wanted: frozenset[str], owned: frozenset[str]) -> bool:
    return ANY in owned or wanted <= owned


def missing(owned: Iterable[Rule], wanted: Iterable[Rule]) -> list[Rule]:
    """Return what of the wanted rules the owned ones do not cover, put together by resource."""
    held = list(owned)
    lacking: dict[tuple[frozenset[str], ...], frozenset[str]] = {}
    for rule in wanted:
        for atom in rule.atoms():
            if not any(own.covers(atom) for own in held):
                place = (atom.groups, atom.resources, atom.names, atom.urls)
                lacking[place] = lacking.get(place, frozenset()) | atom.verbs
    return [Rule(verbs, *place) for place, verbs in lacking.items()]
