"""The admission policies by which workloads get the queues that they may use, for clusters.

The embedded API server follows the rules itself. On clusters a ValidatingAdmissionPolicy
(Kubernetes 1.30 and newer) holds who may use a queue, with each Queue as its parameter. A queue
that leaves the matter to its parent is held by the scheduler alone. A MutatingAdmissionPolicy
(1.36 and newer) puts in the default queue of the namespace.
"""

from __future__ import annotations

from typing import Final

from lockstep.api.admission_policy import by_others, has, mutating, rule, validating
from lockstep.api.names import (
    API_VERSION,
    DEFAULT_QUEUE_LABEL,
    GANG_LABEL,
    GROUP,
    QUEUE_LABEL,
    SCHEDULER_NAME,
    SYSTEM_NAMESPACE,
    TEAM_LABEL,
)
from lockstep.api.wire import Json

NAME: Final = "lockstep-queue-use"
DEFAULT_NAME: Final = "lockstep-default-queue"
_OWN: Final = f"system:serviceaccount:{SYSTEM_NAMESPACE}:"
_RULES: Final = (
    rule("", "pods", version="v1"),
    rule(GROUP, "trainingjobs", "gangs", "environments", "pipelineruns"),
)


def objects() -> list[Json]:
    """Return the policy that holds who may use a queue, and its binding.

    Where the kind of Queues is gone, "Fail" would refuse every pod of the cluster. The scheduler
    holds the same rule, so what passes here by mistake gets no place there. Lockstep's own parts
    hand on what others asked for: the scheduler holds that.
    """
    return validating(
        NAME,
        _RULES,
        _variables(),
        "!variables.meant || !variables.held || variables.lets",
        _message(),
        conditions={"of-others": by_others(_OWN), "is-ours": f"{_named('object')} != ''"},
        parameters={"apiVersion": API_VERSION, "kind": "Queue"},
        fails="Ignore",
    )


def default_objects() -> list[Json]:
    """Return the policy that puts in a namespace's default queue, and its binding.

    The policy of who may use a queue comes after it.
    """
    path = "/metadata/labels/" + QUEUE_LABEL.replace("/", "~1")
    labels = "{op: 'add', path: '/metadata/labels', value: {}}"
    label = f"{{op: 'add', path: '{path}', value: variables.meant}}"
    field = "{op: 'add', path: '/spec/queue', value: variables.meant}"
    return mutating(
        DEFAULT_NAME,
        _RULES,
        {"meant": f"namespaceObject.metadata.labels['{DEFAULT_QUEUE_LABEL}']"},
        f"object.kind != 'Pod' ? [JSONPatch{field}] : "
        f"(has(object.metadata.labels) ? [] : [JSONPatch{labels}]) + [JSONPatch{label}]",
        ("names-none", _names_none()),
        namespaces={"matchExpressions": [{"key": DEFAULT_QUEUE_LABEL, "operator": "Exists"}]},
    )


def _names_none() -> str:
    """Return the expression of whether an object waits in ``default``, or in no queue by name."""
    field = "has(object.spec.queue) ? object.spec.queue in ['', 'default'] : true"
    return f"object.kind == 'Pod' ? {_named('object')} == 'default' : ({field})"


def _named(what: str) -> str:
    """Return the expression of the queue that an object names; empty for what waits in none."""
    pod = f"{what}.kind == 'Pod'"
    gang = has(what, "labels", GANG_LABEL)
    ours = f"{what}.spec.schedulerName == '{SCHEDULER_NAME}' && !({gang})"
    return (
        f"(({has(what, 'labels', QUEUE_LABEL)}) ? {what}.metadata.labels['{QUEUE_LABEL}'] : "
        f"{pod} ? ({ours} ? 'default' : '') : "
        f"has({what}.spec.queue) ? {what}.spec.queue : 'default')"
    )


def _variables() -> dict[str, str]:
    allowed = "has(params.spec) && has(params.spec.allowed)"
    space = "has(namespaceObject.metadata.labels)"
    return {
        "meant": f"params.metadata.name == {_named('object')} && (request.operation == 'CREATE' || "
        f"params.metadata.name != {_named('oldObject')})",
        "team": f"{has('params', 'labels', TEAM_LABEL)} ? "
        f"params.metadata.labels['{TEAM_LABEL}'] : ''",
        "held": f"variables.team != '' || ({allowed})",
        "labels": f"{space} ? namespaceObject.metadata.labels : {{}}",
        "lets": f"(variables.team != '' && '{TEAM_LABEL}' in variables.labels && "
        f"variables.labels['{TEAM_LABEL}'] == variables.team) || ({allowed} && ({_lets()}))",
    }


def _lets() -> str:
    one = "params.spec.allowed"
    chosen = f"{one}.namespaceSelector"
    user = "request.userInfo"
    return " || ".join(
        [
            f"(has({one}.namespaces) && object.metadata.namespace in {one}.namespaces)",
            f"(has({one}.users) && {user}.username in {one}.users)",
            f"(has({one}.groups) && has({user}.groups) && "
            f"{user}.groups.exists(g, g in {one}.groups))",
            f"(has({chosen}) && {_selects(chosen, 'variables.labels')})",
        ]
    )


def _selects(selector: str, labels: str) -> str:
    """Return the expression of whether a label selector matches."""
    value = f"{labels}[e.key] in e.values"
    holds = (
        f"e.operator == 'In' ? (e.key in {labels} && {value}) : "
        f"e.operator == 'NotIn' ? !(e.key in {labels} && {value}) : "
        f"e.operator == 'Exists' ? e.key in {labels} : !(e.key in {labels})"
    )
    return (
        f"(!has({selector}.matchLabels) || {selector}.matchLabels.all(k, k in {labels} && "
        f"{labels}[k] == {selector}.matchLabels[k])) && "
        f"(!has({selector}.matchExpressions) || {selector}.matchExpressions.all(e, {holds}))"
    )


def _message() -> str:
    """Return the expression of what is said; it is what the embedded API server says."""
    who = "'user ' + request.userInfo.username + ' in namespace ' + object.metadata.namespace"
    kind, where = (
        f"(variables.team != '' ? '{a}' : '{b}')"
        for a, b in (("teams", "queues"), ("spec.queue.allowed of Team ", "spec.allowed of Queue "))
    )
    name = "(variables.team != '' ? variables.team : params.metadata.name)"
    return (
        f"{who} + ' may not use queue ' + params.metadata.name + '; what would help: another queue "
        f"(lockstep queue list), or an entry in ' + {where} + {name} + ', made by an administrator "
        f"(who may update ' + {kind} + '.{GROUP})'"
    )
