"""Requests that are wrong in themselves."""

from __future__ import annotations

from typing import Final

from tests.support.conformance.script.ask import (
    JSON_PATCH,
    MERGE,
    STRATEGIC,
    Ask,
    config_map,
    core,
    delete,
    get,
    merge,
    namespace,
    pod,
    post,
    put,
)

NS: Final = "errors"
MAPS: Final = core(NS, "configmaps")
LONG: Final = "a" * 254


def _meta(why: str, **meta: object) -> Ask:
    return post(f"metadata: {why}", MAPS, config_map(**{"name": "m", **meta}))


SCRIPT: Final[tuple[Ask, ...]] = (
    *namespace(NS),
    post("no name", MAPS, {"data": {}}),
    post("another kind", MAPS, pod("p")),
    post("another version", MAPS, {**config_map("m"), "apiVersion": "v2"}),
    post("another group", MAPS, {**config_map("m"), "apiVersion": "apps/v1"}),
    post("another namespace", MAPS, config_map("m", namespace="default")),
    post("no such namespace", core("no", "configmaps"), config_map("m")),
    post("no namespace", "/api/v1/configmaps", config_map("m")),
    post("a version at creation", MAPS, config_map("v", resourceVersion="1")),
    post("not JSON", MAPS, b"{nonsense"),
    post("JSON that ends early", MAPS, b'{"metadata": {'),
    post("a list as a body", MAPS, b"[]"),
    post("a number as a body", MAPS, b"1"),
    post("null as a body", MAPS, b"null"),
    post("an empty body", MAPS, b""),
    post("not YAML", MAPS, b"a: [", content_type="application/yaml"),
    post("an unknown content type", MAPS, b"<a/>", content_type="application/xml"),
    post("a wrong type", MAPS, {"metadata": {"name": "m"}, "data": {"a": 1}}),
    post("a wrong type of metadata", MAPS, {"metadata": "m"}),
    post("a wrong type of labels", MAPS, {"metadata": {"name": "m", "labels": {"a": True}}}),
    post("an unknown field, warned", MAPS, {**config_map("u1"), "x": 1}),
    post(
        "an unknown field, strict", f"{MAPS}?fieldValidation=Strict", {**config_map("u2"), "x": 1}
    ),
    post(
        "an unknown field, ignored", f"{MAPS}?fieldValidation=Ignore", {**config_map("u3"), "x": 1}
    ),
    post(
        "unknown fields below",
        f"{core(NS, 'pods')}?fieldValidation=Strict",
        pod("p", containers=[{"name": "c", "image": "i", "imagee": 1}], hostname2="x"),
    ),
    post(
        "a doubled field, warned",
        MAPS,
        b'{"metadata":{"name":"dup"},"data":{"a":"1","a":"2"}}',
    ),
    post(
        "a doubled field, strict",
        f"{MAPS}?fieldValidation=Strict",
        b'{"metadata":{"name":"dup2"},"data":{"a":"1"},"data":{"a":"2"}}',
    ),
    post("a bad field validation", f"{MAPS}?fieldValidation=Maybe", config_map("m")),
    post("a bad dry run", f"{MAPS}?dryRun=Some", config_map("m")),
    post("a bad field manager", f"{MAPS}?fieldManager={'m' * 130}", config_map("m")),
    merge("a bad dry run of a patch", f"{MAPS}/u1?dryRun=Some", {}),
    merge("force without apply", f"{MAPS}/u1?force=true", {}),
    delete("a bad dry run of a deletion", f"{MAPS}/u1?dryRun=Some"),
    delete("a bad propagation", f"{MAPS}/u1?propagationPolicy=Sideways"),
    delete("a bad propagation in the body", f"{MAPS}/u1", {"propagationPolicy": "Sideways"}),
    delete(
        "two propagations", f"{MAPS}/u1", {"propagationPolicy": "Orphan", "orphanDependents": True}
    ),
    delete("a bad grace", f"{MAPS}/u1?gracePeriodSeconds=soon"),
    delete("options of another kind", f"{MAPS}/u1", {"kind": "Pod", "apiVersion": "v1"}),
    delete("options not in JSON", f"{MAPS}/u1", b"{"),
    _meta("a capital in the name", name="Big"),
    _meta("a blank in the name", name="a b"),
    _meta("a slash in the name", name="a/b"),
    _meta("a long name", name=LONG),
    _meta("a bad label key", labels={"a b": "1"}),
    _meta("a bad label value", labels={"a": "b c"}),
    _meta("a long label value", labels={"a": "v" * 64}),
    _meta("a bad annotation", annotations={"a b": "1"}),
    _meta("a bad finalizer", finalizers=["not qualified"]),
    _meta("an unqualified finalizer", finalizers=["plain"]),
    _meta(
        "an owner without a uid", ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "p"}]
    ),
    _meta("an owner of no kind", ownerReferences=[{"name": "p", "uid": "u"}]),
    _meta(
        "two controllers",
        ownerReferences=[
            {"apiVersion": "v1", "kind": "Pod", "name": n, "uid": n, "controller": True}
            for n in ("p", "q")
        ],
    ),
    _meta(
        "an owner twice",
        name="twice",
        ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}] * 2,
    ),
    _meta("a bad prefix", name="", generateName="Bad_"),
    get("no such object", f"{MAPS}/none"),
    get("no such kind", f"{core(NS, 'nonsense')}/m"),
    get("no such group", f"/apis/nobody.example.com/v1/namespaces/{NS}/things"),
    get("no such version", f"/apis/apps/v9/namespaces/{NS}/deployments"),
    get("no such path", "/nowhere"),
    get("no such path of a group", "/apis/nobody/v1"),
    get("no such subresource", f"{MAPS}/u1/status"),
    get("no such resource of a cluster", f"{core(NS, 'nodes')}/n"),
    Ask("POST to an object", "POST", f"{MAPS}/u1", config_map("u1")),
    Ask("PUT to a collection", "PUT", MAPS, config_map("u1")),
    Ask("PATCH of a collection", "PATCH", MAPS, {}, MERGE),
    Ask("DELETE of all namespaces", "DELETE", "/api/v1/namespaces"),
    Ask("DELETE of the version", "DELETE", "/version"),
    Ask("POST to discovery", "POST", "/apis", {}),
    Ask("an invented method", "FROB", f"{MAPS}/u1"),
    Ask("PATCH of an unknown type", "PATCH", f"{MAPS}/u1", {}, "text/plain"),
    Ask("PATCH of plain JSON", "PATCH", f"{MAPS}/u1", {}, "application/json"),
    Ask("PATCH without a body", "PATCH", f"{MAPS}/u1", b"", MERGE),
    Ask("PATCH of nothing", "PATCH", f"{MAPS}/none", {"data": {}}, MERGE),
    Ask("a merge patch not in JSON", "PATCH", f"{MAPS}/u1", b"{", MERGE),
    Ask("a merge patch that is a list", "PATCH", f"{MAPS}/u1", [], MERGE),
    Ask("a strategic patch not in JSON", "PATCH", f"{MAPS}/u1", b"{", STRATEGIC),
    Ask("a JSON patch not in JSON", "PATCH", f"{MAPS}/u1", b"{", JSON_PATCH),
    Ask("a JSON patch that is an object", "PATCH", f"{MAPS}/u1", {}, JSON_PATCH),
    put("PUT of another kind", f"{MAPS}/u1", pod("u1")),
    put("PUT not in JSON", f"{MAPS}/u1", b"{"),
    put("PUT of a wrong type", f"{MAPS}/u1", {"metadata": {"name": "u1"}, "data": []}),
)
