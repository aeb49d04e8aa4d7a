"""JSON patches, merge patches and strategic merge patches."""

from __future__ import annotations

from typing import Any, Final

from tests.support.conformance.script.ask import (
    APPLY,
    STRATEGIC,
    Ask,
    config_map,
    core,
    deployment,
    get,
    json_patch,
    merge,
    namespace,
    of,
    post,
    strategic,
)

NS: Final = "patches"
M: Final = core(NS, "configmaps") + "/m"
D: Final = of("apps", NS, "deployments") + "/d"
SVC: Final = core(NS, "services") + "/s"


def _op(name: str, *ops: Any) -> Ask:
    return json_patch(f"JSON patch: {name}", M, list(ops))


def _op1(op: str, path: str, **more: Any) -> dict[str, Any]:
    return {"op": op, "path": path, **more}


def _spec(name: str, pod_spec: Any) -> Ask:
    return strategic(f"strategic: {name}", D, {"spec": {"template": {"spec": pod_spec}}})


_MAIN: Final = {"name": "main"}
SCRIPT: Final[tuple[Ask, ...]] = (
    *namespace(NS),
    post(
        "to be patched",
        core(NS, "configmaps"),
        config_map("m", {"a": "1"}, annotations={"x.y/z": "2"}),
    ),
    _op("add", _op1("add", "/data/c", value="4")),
    _op("replace", _op1("replace", "/data/a", value="5")),
    _op("remove", _op1("remove", "/data/c")),
    _op("move", _op1("move", "/data/b", **{"from": "/data/a"})),
    _op("copy", _op1("copy", "/data/a", **{"from": "/data/b"})),
    _op("an escaped path", _op1("replace", "/metadata/annotations/x.y~1z", value="6")),
    _op("a tilde in a path", _op1("replace", "/data/t~0", value="7")),
    _op("test holds", _op1("test", "/data/a", value="5"), _op1("add", "/data/z", value="9")),
    _op("test fails", _op1("test", "/data/a", value="0"), _op1("add", "/data/y", value="9")),
    _op("test of what is not there", _op1("test", "/data/none", value="0")),
    _op("test of null", _op1("test", "/data/none", value=None)),
    _op("remove what is not there", _op1("remove", "/data/none")),
    _op("replace what is not there", _op1("replace", "/data/none", value="1")),
    _op("add below what is not there", _op1("add", "/spec/none", value="1")),
    _op("copy what is not there", _op1("copy", "/data/q", **{"from": "/data/none"})),
    _op("an unknown op", _op1("frob", "/data/a")),
    _op("no path", {"op": "add", "value": "1"}),
    _op("a path without a slash", _op1("add", "data", value="1")),
    _op("labels from nothing", _op1("add", "/metadata/labels", value={"l": "1"})),
    _op("a finalizer at the end", _op1("add", "/metadata/finalizers", value=["a.b/c"])),
    _op("another at the end", _op1("add", "/metadata/finalizers/-", value="d.e/f")),
    _op("one in front", _op1("add", "/metadata/finalizers/0", value="g.h/i")),
    _op("one out of range", _op1("add", "/metadata/finalizers/9", value="j.k/l")),
    _op("remove by number", _op1("remove", "/metadata/finalizers/1")),
    _op("the name", _op1("replace", "/metadata/name", value="n")),
    _op("the kind", _op1("replace", "/kind", value="Secret")),
    _op("a wrong type", _op1("add", "/data/a", value=1)),
    _op("an unknown field", _op1("add", "/nothing", value=1)),
    _op("nothing at all"),
    _op("the whole", _op1("replace", "", value=config_map("m", {"w": "1"}))),
    json_patch(
        "JSON patch: strict", f"{M}?fieldValidation=Strict", [_op1("add", "/nothing", value=1)]
    ),
    merge("merge: add, change and remove", M, {"data": {"w": None, "b": "3", "c": "4"}}),
    merge("merge: nothing", M, {}),
    merge("merge: what is so already", M, {"data": {"b": "3"}}),
    merge("merge: remove what is not there", M, {"data": {"none": None}}),
    merge("merge: the name", M, {"metadata": {"name": "n"}}),
    merge("merge: the namespace", M, {"metadata": {"namespace": "n"}}),
    merge("merge: the uid", M, {"metadata": {"uid": "u"}}),
    merge("merge: its version", M, {"metadata": {"resourceVersion": "1"}, "data": {"s": "1"}}),
    merge("merge: a wrong type", M, {"data": "all"}),
    merge("merge: an unknown field", M, {"nothing": 1}),
    merge("merge: strict", f"{M}?fieldValidation=Strict", {"nothing": 1}),
    merge("merge: as a trial", f"{M}?dryRun=All", {"data": {"dry": "1"}}),
    merge("merge: by a manager", f"{M}?fieldManager=me", {"metadata": {"labels": {"me": "1"}}}),
    merge("merge: all data away", M, {"data": None}),
    merge("merge: managers reset", M, {"metadata": {"managedFields": [{}]}}),
    merge("merge: after the reset", M, {"data": {"new": "1"}}),
    get("merged", M),
    post("deployment to be patched", of("apps", NS, "deployments"), deployment("d")),
    _spec("a container's image", {"containers": [{**_MAIN, "image": "other"}]}),
    _spec("a second container", {"containers": [{"name": "side", "image": "side"}]}),
    _spec("a variable", {"containers": [{**_MAIN, "env": [{"name": "A", "value": "1"}]}]}),
    _spec(
        "two variables in an order",
        {
            "containers": [
                {
                    **_MAIN,
                    "env": [{"name": "B", "value": "2"}],
                    "$setElementOrder/env": [{"name": "B"}, {"name": "A"}],
                }
            ]
        },
    ),
    _spec(
        "a variable away", {"containers": [{**_MAIN, "env": [{"name": "A", "$patch": "delete"}]}]}
    ),
    _spec(
        "all variables anew",
        {"containers": [{**_MAIN, "env": [{"name": "C"}, {"$patch": "replace"}]}]},
    ),
    _spec("a container away", {"containers": [{"name": "side", "$patch": "delete"}]}),
    _spec("a list without its key", {"containers": [{"image": "nameless"}]}),
    _spec("a list that is one value", {"containers": [{**_MAIN, "command": ["a", "b"]}]}),
    _spec("a volume", {"volumes": [{"name": "v", "emptyDir": {}}]}),
    _spec(
        "another source of it",
        {
            "volumes": [
                {"name": "v", "hostPath": {"path": "/"}, "$retainKeys": ["name", "hostPath"]}
            ]
        },
    ),
    _spec("tolerations", {"tolerations": [{"key": "k", "operator": "Exists"}]}),
    _spec("an unknown directive", {"containers": [{**_MAIN, "$patch": "frob"}]}),
    strategic(
        "strategic: another strategy",
        D,
        {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}},
    ),
    strategic("strategic: the selector", D, {"spec": {"selector": {"matchLabels": {"app": "e"}}}}),
    strategic(
        "strategic: a map anew", D, {"metadata": {"annotations": {"$patch": "replace", "x": "1"}}}
    ),
    strategic("strategic: a wrong type", D, {"spec": {"replicas": "many"}}),
    strategic("strategic: null", D, {"spec": {"replicas": None}}),
    strategic("strategic: a list for a map", D, {"spec": []}),
    strategic("strategic: finalizers merge", D, {"metadata": {"finalizers": ["a.b/c"]}}),
    strategic("strategic: and again", D, {"metadata": {"finalizers": ["d.e/f"]}}),
    strategic(
        "strategic: one away", D, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a.b/c"]}}
    ),
    post(
        "service to be patched",
        core(NS, "services"),
        {"metadata": {"name": "s"}, "spec": {"clusterIP": "None", "ports": [{"port": 80}]}},
    ),
    strategic("strategic: a port", SVC, {"spec": {"ports": [{"port": 81, "name": "b"}]}}),
    strategic(
        "strategic: name the first port",
        SVC,
        {"spec": {"ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]}},
    ),
    strategic("strategic: as a trial", f"{SVC}?dryRun=All", {"metadata": {"labels": {"a": "b"}}}),
    get("strategically merged", D),
    Ask(
        "strategic patch of a custom resource",
        "PATCH",
        "/apis/lockstep.dev/v1alpha1/queues/none",
        {},
        STRATEGIC,
    ),
    Ask("apply as a list", "PATCH", f"{M}?fieldManager=a", b"[]", APPLY),
)
