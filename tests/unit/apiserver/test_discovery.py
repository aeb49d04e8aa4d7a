from __future__ import annotations

from dataclasses import replace

from lockstep.apiserver.builtin import BUILTINS, REVIEWS, Kind
from lockstep.apiserver.discovery import (
    api_group,
    api_group_list,
    api_resource_list,
    api_versions,
    group_discovery,
)

ALL = [*BUILTINS, *REVIEWS]


def custom(version: str) -> Kind:
    return Kind(
        group="lockstep.dev",
        version=version,
        plural="gangs",
        kind="Gang",
        namespaced=True,
        singular="gang",
        schema_name="",
        subresources=frozenset({"status"}),
    )


def test_core_version() -> None:
    assert api_versions("127.0.0.1:6443") == {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [
            {"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}
        ],
    }


def test_groups_come_in_kubernetes_order_and_custom_ones_last() -> None:
    foreign = replace(custom("v1"), group="kai.alibabacloud.com")
    names = [g["name"] for g in api_group_list([foreign, custom("v1"), *ALL])["groups"]]
    assert names[:3] == ["apiregistration.k8s.io", "apps", "events.k8s.io"]
    # Clients take the first group that has a name: ours before those of other operators.
    assert names[-2:] == ["lockstep.dev", "kai.alibabacloud.com"]
    assert "" not in names


def test_the_preferred_version_is_the_most_stable_and_newest() -> None:
    versions = ["v1alpha1", "v2", "v1beta2", "v10", "v1beta10", "odd"]
    group = api_group([custom(v) for v in versions], "lockstep.dev")
    assert group is not None
    listed = [v["version"] for v in group["versions"]]
    assert listed == ["v10", "v2", "v1beta10", "v1beta2", "v1alpha1", "odd"]
    assert group["preferredVersion"] == {"groupVersion": "lockstep.dev/v10", "version": "v10"}


def test_what_is_not_served_has_no_document() -> None:
    assert api_group(ALL, "nope") is None
    assert api_resource_list(ALL, "apps", "v2") is None


def test_resources_of_the_core_group_are_those_of_kubernetes() -> None:
    document = api_resource_list(ALL, "", "v1")
    assert document is not None
    entries = {r["name"]: r for r in document["resources"]}
    assert {k: v for k, v in document.items() if k != "resources"} == {
        "kind": "APIResourceList",
        "groupVersion": "v1",
    }
    assert entries["pods"] == {
        "name": "pods",
        "singularName": "pod",
        "namespaced": True,
        "kind": "Pod",
        "verbs": [
            "create",
            "delete",
            "deletecollection",
            "get",
            "list",
            "patch",
            "update",
            "watch",
        ],
        "shortNames": ["po"],
        "categories": ["all"],
        "storageVersionHash": "xPOwRZ+Yhw8=",
    }
    assert entries["pods/eviction"] == {
        "name": "pods/eviction",
        "singularName": "",
        "namespaced": True,
        "group": "policy",
        "version": "v1",
        "kind": "Eviction",
        "verbs": ["create"],
    }
    assert "deletecollection" not in entries["namespaces"]["verbs"]
    assert entries["bindings"]["verbs"] == ["create"]


def test_aggregated_documents_split_the_core_group_from_the_others() -> None:
    core = group_discovery(ALL, legacy=True)
    others = group_discovery([custom("v1"), *ALL], legacy=False, version="v2beta1")
    assert [i["metadata"] for i in core["items"]] == [{}]
    assert others["apiVersion"] == "apidiscovery.k8s.io/v2beta1"
    gangs = others["items"][-1]["versions"][0]["resources"][0]
    assert gangs["responseKind"] == {"group": "lockstep.dev", "version": "v1", "kind": "Gang"}
    assert gangs["subresources"] == [
        {
            "subresource": "status",
            "responseKind": {"group": "lockstep.dev", "version": "v1", "kind": "Gang"},
            "verbs": ["get", "patch", "update"],
        }
    ]
    deployments = next(
        r
        for g in others["items"]
        if g["metadata"]["name"] == "apps"
        for r in g["versions"][0]["resources"]
        if r["resource"] == "deployments"
    )
    assert deployments["subresources"][0]["responseKind"]["kind"] == "Scale"
    assert deployments["responseKind"] == {"group": "", "version": "", "kind": "Deployment"}
