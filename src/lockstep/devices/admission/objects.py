"""The webhook's configuration, which asks it about pods with shares of GPUs and about no others.

Such a pod is refused while the webhook does not answer: started without it, its limits would not be
held. All other pods never meet it.
"""

from __future__ import annotations

from typing import Final

from lockstep.api import names
from lockstep.api.wire import Json
from lockstep.compat.shares import words

NAME: Final = "lockstep-shares"
SERVICE: Final = "lockstep-admission"
PATH: Final = "/shares"
_OURS: Final = (names.GPU_MEMORY, names.GPU_COMPUTE)


def configuration(namespace: str = names.SYSTEM_NAMESPACE, url: str = "") -> Json:
    """Return it, for the Service in *namespace* or a *url*; the webhook adds its certificate."""
    service = {"name": SERVICE, "namespace": namespace, "path": PATH, "port": 443}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": NAME, "labels": {"app.kubernetes.io/part-of": "lockstep"}},
        "webhooks": [
            {
                "name": f"shares.{names.GROUP}",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Fail",
                "reinvocationPolicy": "IfNeeded",
                "timeoutSeconds": 5,
                "rules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["pods"],
                        "scope": "Namespaced",
                    }
                ],
                "matchConditions": [{"name": "asks-for-a-share", "expression": expression()}],
                "clientConfig": {"url": url + PATH} if url else {"service": service},
            }
        ],
    }


def expression() -> str:
    """Return in CEL whether a pod asks for a share, in any system's words."""
    marks = {*_OURS, words.SHARED, *words.UNHELD, *(m for one in words.ALL for m in one.marks)}
    listed = ", ".join(f"'{one}'" for one in sorted(marks))
    side = "has(c.resources.{0}) && c.resources.{0}.exists(k, k in [{1}])"
    asks = " || ".join(f"({side.format(one, listed)})" for one in ("limits", "requests"))
    containers = [
        f"has(object.spec.{one}) && object.spec.{one}.exists(c, has(c.resources) && ({asks}))"
        for one in ("containers", "initContainers")
    ]
    fraction = (
        "has(object.metadata.annotations) && ("
        f"'{words.FRACTION}' in object.metadata.annotations || "
        f"('{words.FRACTION_MEMORY}' in object.metadata.annotations && "
        f"has(object.spec.schedulerName) && object.spec.schedulerName == '{words.KAI_SCHEDULER}'))"
    )
    return " || ".join(f"({one})" for one in (*containers, fraction))
