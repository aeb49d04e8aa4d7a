"""The admission policy that holds workloads to the queues that they may use, for clusters.

The embedded API server follows the rule itself. On clusters a ValidatingAdmissionPolicy (Kubernetes
1.30 and newer) does, with each Queue as its parameter. A queue that leaves the matter to its parent
is held by the scheduler alone.
"""

from __future__ import annotations

from typing import Any, Final

from lockstep.api.admission_policy import by_others, rule, validating
from lockstep.api.names import (
    API_VERSION,
    GANG_LABEL,
    GROUP,
    QUEUE_LABEL,
    SCHEDULER_NAME,
    SYSTEM_NAMESPACE,
    TEAM_LABEL,
)

Json = dict[str, Any]

NAME: Final = "lockstep-queue-use"
_OWN: Final = f"system:serviceaccount:{SYSTEM_NAMESPACE}:"
_LABELS: Final = "has({0}.metadata.labels)"


def objects() -> list[Json]:
    """Return the policy and its binding.

    Where the kind of Queues is gone, "Fail" would refuse every pod of the cluster. The scheduler
    holds the same rule, so what passes here by mistake gets no place there. Lockstep's own parts
    hand on what others asked for: the scheduler holds that.
    """
    kinds = ("trainingjobs", "gangs", "environments", "pipelineruns")
    return validating(
        NAME,
        [rule("", "pods", version="v1"), rule(GROUP, *kinds)],
        _variables(),
        "!variables.meant || !variables.held || variables.lets",
        _message(),
        conditions={"of-others": by_others(_OWN), "is-ours": f"{_named('object')} != ''"},
        parameters={"apiVersion": API_VERSION, "kind": "Queue"},
        fails="Ignore",
    )


def _named(what: str) -> str:
    """Return the expression of the queue that an object names; empty for what waits in none."""
    labels = _LABELS.format(what)
    pod = f"{what}.kind == 'Pod'"
    label = f"({labels} && '{QUEUE_LABEL}' in {what}.metadata.labels)"
    ours = (
        f"{what}.spec.schedulerName == '{SCHEDULER_NAME}' && "
        f"!({labels} && '{GANG_LABEL}' in {what}.metadata.labels)"
    )
    return (
        f"({label} ? {what}.metadata.labels['{QUEUE_LABEL}'] : "
        f"{pod} ? ({ours} ? 'default' : '') : "
        f"has({what}.spec.queue) ? {what}.spec.queue : 'default')"
    )


def _variables() -> dict[str, str]:
    params = _LABELS.format("params")
    allowed = "has(params.spec) && has(params.spec.allowed)"
    space = _LABELS.format("namespaceObject")
    return {
        "meant": f"params.metadata.name == {_named('object')} && (request.operation == 'CREATE' || "
        f"params.metadata.name != {_named('oldObject')})",
        "team": f"{params} && '{TEAM_LABEL}' in params.metadata.labels ? "
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
