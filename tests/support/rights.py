"""Rights one by one, as they are granted and as they are used."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from lockstep.api.permissions.parts import PERMISSIONS
from lockstep.api.permissions.rules import METRICS, OWN
from lockstep.api.wire import Json


@dataclass(frozen=True, order=True)
class Right:
    """One verb on one resource; *namespace* and *name* are empty where it holds for all."""

    group: str
    resource: str
    verb: str
    namespace: str = ""
    name: str = ""

    def covers(self, use: Right) -> bool:
        """Tell whether a request that was made needed no more than this."""
        return (
            (self.group, self.resource, self.verb) == (use.group, use.resource, use.verb)
            and self.namespace in ("", use.namespace)
            and self.name in ("", use.name)
        )


def granted(part: str, namespace: str) -> set[Right]:
    """Return what the table grants to a part that runs in *namespace*."""
    may = PERMISSIONS[part]
    found = set(_each([*may.cluster, *(METRICS if may.serves else ())], ""))
    for space, rules in may.namespaced.items():
        found |= set(_each(rules, namespace if space == OWN else space))
    return found


def _each(rules: Iterable[Json], namespace: str) -> Iterator[Right]:
    for rule in rules:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    for name in rule.get("resourceNames", [""]):
                        yield Right(group, resource, verb, namespace, name)


def used(log: Iterable[str], user: str) -> tuple[set[Right], set[Right]]:
    """Return what *user* asked for by the lines of an audit log: what it got, what it did not."""
    got: set[Right] = set()
    refused: set[Right] = set()
    for line in log:
        event: dict[str, Any] = json.loads(line)
        ref = event.get("objectRef")
        if event["user"]["username"] == user and ref is not None:
            allowed = event["annotations"]["authorization.k8s.io/decision"] == "allow"
            (got if allowed else refused).add(_right(event["verb"], ref))
            # What is applied and was not there needs the right to create, too.
            if event["verb"] == "patch" and event.get("responseStatus", {}).get("code") == 201:
                got.add(_right("create", ref))
    return got, refused


def _right(verb: str, ref: dict[str, str]) -> Right:
    resource = ref["resource"]
    if ref.get("subresource"):
        resource += f"/{ref['subresource']}"
    return Right(
        ref.get("apiGroup", ""), resource, verb, ref.get("namespace", ""), ref.get("name", "")
    )
