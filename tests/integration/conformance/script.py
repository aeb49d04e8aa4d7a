"""The requests that both servers are asked, in order; each begins where the last one ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

Json = Any
MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
APPLY: Final = "application/apply-patch+yaml"
NS: Final = "/api/v1/namespaces/conf"
MAPS: Final = f"{NS}/configmaps"
PODS: Final = f"{NS}/pods"
APPS: Final = "/apis/apps/v1/namespaces/conf/deployments"
LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/conf/leases"
GANGS: Final = "/apis/lockstep.dev/v1alpha1/namespaces/conf/gangs"


@dataclass(frozen=True)
class Ask:
    """One request."""

    name: str
    method: str
    path: str
    body: Json = None
    content_type: str = "application/json"


def config_map(name: str, data: Json = None, **meta: Json) -> Json:
    """Return a ConfigMap."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **meta},
        "data": data or {"a": "1"},
    }


def pod(name: str, **spec: Json) -> Json:
    """Return a pod of one container."""
    containers = [{"name": "main", "image": "busybox"}]
    body = {"containers": containers, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": body}


def gang(name: str, **spec: Json) -> Json:
    """Return a Gang."""
    kind = {"apiVersion": "lockstep.dev/v1alpha1", "kind": "Gang"}
    return {**kind, "metadata": {"name": name}, "spec": spec}


DEPLOYMENT: Final = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "d"}},
        "template": {
            "metadata": {"labels": {"app": "d"}},
            "spec": {"containers": [{"name": "main", "image": "busybox"}]},
        },
    },
}
LEASE: Final = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}}

SCRIPT: Final = (
    Ask("namespace", "POST", "/api/v1/namespaces", {"metadata": {"name": "conf"}}),
    Ask("namespace again", "POST", "/api/v1/namespaces", {"metadata": {"name": "conf"}}),
    Ask("namespace with a bad name", "POST", "/api/v1/namespaces", {"metadata": {"name": "A_b"}}),
    Ask("create", "POST", MAPS, config_map("m", labels={"x": "1"})),
    Ask("create again", "POST", MAPS, config_map("m")),
    Ask("create without a name", "POST", MAPS, {"data": {}}),
    Ask("create of another kind", "POST", MAPS, pod("p")),
    Ask("create elsewhere", "POST", MAPS, config_map("m", namespace="default")),
    Ask("create in no namespace", "POST", "/api/v1/namespaces/no/configmaps", config_map("m")),
    Ask("create with a version", "POST", MAPS, config_map("v", resourceVersion="1")),
    Ask("create not in JSON", "POST", MAPS, b"{nonsense"),
    Ask(
        "create, an unknown field",
        "POST",
        f"{MAPS}?fieldValidation=Strict",
        {**config_map("u"), "x": 1},
    ),
    Ask("create as a trial", "POST", f"{MAPS}?dryRun=All", config_map("trial")),
    Ask("get", "GET", f"{MAPS}/m"),
    Ask("get what the trial made", "GET", f"{MAPS}/trial"),
    Ask("get of an unknown kind", "GET", f"{NS}/nonsense/m"),
    Ask("list", "GET", MAPS),
    Ask("list by label", "GET", f"{MAPS}?labelSelector=x%3D1"),
    Ask("list by set", "GET", f"{MAPS}?labelSelector=x+notin+(1)"),
    Ask("list by a broken selector", "GET", f"{MAPS}?labelSelector=x%3D%3D%3D"),
    Ask("list by name", "GET", f"{MAPS}?fieldSelector=metadata.name%3Dm"),
    Ask("list by an unknown field", "GET", f"{MAPS}?fieldSelector=data.a%3D1"),
    Ask("list from a broken token", "GET", f"{MAPS}?continue=nonsense"),
    Ask("put", "PUT", f"{MAPS}/m", config_map("m", {"a": "2"}, labels={"x": "1"})),
    Ask("put, a stale version", "PUT", f"{MAPS}/m", config_map("m", resourceVersion="1")),
    Ask("put, another name", "PUT", f"{MAPS}/m", config_map("other")),
    Ask("put of what is not there", "PUT", f"{MAPS}/none", config_map("none", uid="x")),
    Ask("merge patch", "PATCH", f"{MAPS}/m", {"data": {"a": None, "b": "3"}}, MERGE),
    Ask(
        "JSON patch",
        "PATCH",
        f"{MAPS}/m",
        [{"op": "add", "path": "/data/c", "value": "4"}],
        JSON_PATCH,
    ),
    Ask(
        "JSON patch, test fails",
        "PATCH",
        f"{MAPS}/m",
        [{"op": "test", "path": "/data/c", "value": "5"}],
        JSON_PATCH,
    ),
    Ask(
        "JSON patch, no such path",
        "PATCH",
        f"{MAPS}/m",
        [{"op": "remove", "path": "/data/z"}],
        JSON_PATCH,
    ),
    Ask("patch of an unknown type", "PATCH", f"{MAPS}/m", {}, "text/plain"),
    Ask("patch of what is not there", "PATCH", f"{MAPS}/none", {"data": {}}, MERGE),
    Ask("apply", "PATCH", f"{MAPS}/s?fieldManager=one", config_map("s"), APPLY),
    Ask(
        "apply, a conflict",
        "PATCH",
        f"{MAPS}/s?fieldManager=two",
        config_map("s", {"a": "2"}),
        APPLY,
    ),
    Ask(
        "apply by force",
        "PATCH",
        f"{MAPS}/s?fieldManager=two&force=true",
        config_map("s", {"a": "2"}),
        APPLY,
    ),
    Ask("apply without a manager", "PATCH", f"{MAPS}/s", config_map("s"), APPLY),
    Ask("immutable", "POST", MAPS, {**config_map("fixed"), "immutable": True}),
    Ask("change what is immutable", "PATCH", f"{MAPS}/fixed", {"data": {"a": "9"}}, MERGE),
    Ask("pod", "POST", PODS, pod("p")),
    Ask("pod without containers", "POST", PODS, pod("q", containers=[])),
    Ask("pod, a bad restart policy", "POST", PODS, pod("q", restartPolicy="Often")),
    Ask(
        "pod, a bad quantity",
        "POST",
        PODS,
        pod(
            "q", containers=[{"name": "c", "image": "i", "resources": {"limits": {"cpu": "much"}}}]
        ),
    ),
    Ask(
        "pod, change of a fixed field",
        "PATCH",
        f"{PODS}/p",
        {"spec": {"restartPolicy": "Never"}},
        MERGE,
    ),
    Ask(
        "pod, strategic patch",
        "PATCH",
        f"{PODS}/p",
        {"spec": {"containers": [{"name": "main", "image": "other"}]}},
        STRATEGIC,
    ),
    Ask("pod status", "PATCH", f"{PODS}/p/status", {"status": {"phase": "Running"}}, MERGE),
    Ask(
        "bind",
        "POST",
        f"{PODS}/p/binding",
        {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}},
    ),
    Ask(
        "bind again",
        "POST",
        f"{PODS}/p/binding",
        {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}},
    ),
    Ask("pod once bound", "GET", f"{PODS}/p"),
    Ask("list by node", "GET", f"{PODS}?fieldSelector=spec.nodeName%3Dn"),
    Ask("delete a bound pod", "DELETE", f"{PODS}/p"),
    Ask("delete it at once", "DELETE", f"{PODS}/p?gracePeriodSeconds=0"),
    Ask("deployment", "POST", APPS, DEPLOYMENT),
    Ask("scale", "GET", f"{APPS}/d/scale"),
    Ask("scale up", "PATCH", f"{APPS}/d/scale", {"spec": {"replicas": 5}}, MERGE),
    Ask(
        "deployment, another selector",
        "PATCH",
        f"{APPS}/d",
        {"spec": {"selector": {"matchLabels": {"app": "e"}}}},
        MERGE,
    ),
    Ask("lease", "POST", LEASES, LEASE),
    Ask(
        "lease, a negative duration",
        "PATCH",
        f"{LEASES}/l",
        {"spec": {"leaseDurationSeconds": -1}},
        MERGE,
    ),
    Ask("gang", "POST", GANGS, gang("g", minMember=2, unknown=1)),
    Ask("gang, a rule broken", "POST", GANGS, gang("h")),
    Ask("gang, a wrong type", "POST", GANGS, gang("h", minMember="two")),
    Ask("gang, too small", "POST", GANGS, gang("h", minMember=0)),
    Ask("gang status", "PATCH", f"{GANGS}/g/status", {"status": {"phase": "Pending"}}, MERGE),
    Ask("gang, status not by spec", "PATCH", f"{GANGS}/g", {"status": {"phase": "Placed"}}, MERGE),
    Ask("gang, strategic patch", "PATCH", f"{GANGS}/g", {"spec": {"minMember": 3}}, STRATEGIC),
    Ask("delete with a wrong uid", "DELETE", f"{MAPS}/m", {"preconditions": {"uid": "x"}}),
    Ask("a finalizer", "PATCH", f"{MAPS}/m", {"metadata": {"finalizers": ["a.b/c"]}}, MERGE),
    Ask("delete with a finalizer", "DELETE", f"{MAPS}/m"),
    Ask("the finalizer done", "PATCH", f"{MAPS}/m", {"metadata": {"finalizers": None}}, MERGE),
    Ask("get once deleted", "GET", f"{MAPS}/m"),
    Ask("delete again", "DELETE", f"{MAPS}/m"),
    Ask("delete all", "DELETE", f"{MAPS}?fieldSelector=metadata.name%3Ds"),
    Ask("a method that is not there", "DELETE", "/version"),
    Ask("a path that is not there", "GET", "/apis/nobody/v1"),
)
