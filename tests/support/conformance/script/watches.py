"""Watches: where they begin, what they carry, how they end."""

from __future__ import annotations

from typing import Any, Final

from tests.support.conformance.script.ask import (
    PARTIAL,
    TABLE,
    Ask,
    config_map,
    core,
    delete,
    get,
    merge,
    namespace,
    post,
)

NS: Final = "watches"
MAPS: Final = core(NS, "configmaps")
SINCE: Final = "resourceVersion=${watched list:metadata.resourceVersion}"


def _watch(name: str, query: str = "", seconds: int = 1, path: str = MAPS, **more: Any) -> Ask:
    joined = f"&{query}" if query else ""
    return get(f"watch {name}", f"{path}?watch=true&timeoutSeconds={seconds}{joined}", **more)


SCRIPT: Final[tuple[Ask, ...]] = (
    *namespace(NS),
    post("watched a", MAPS, config_map("a", labels={"env": "prod"})),
    get("watched list", MAPS),
    post("watched b", MAPS, config_map("b", labels={"env": "test"})),
    merge("watched a changes", f"{MAPS}/a", {"data": {"a": "2"}}),
    merge("watched b enters", f"{MAPS}/b", {"metadata": {"labels": {"env": "prod"}}}),
    merge("watched a leaves", f"{MAPS}/a", {"metadata": {"labels": {"env": "test"}}}),
    merge("watched a, unchanged", f"{MAPS}/a", {"metadata": {"labels": {"env": "test"}}}),
    delete("watched b goes", f"{MAPS}/b"),
    post("watched c", MAPS, config_map("c", finalizers=["a.b/c"])),
    delete("watched c is to go", f"{MAPS}/c"),
    merge("watched c goes", f"{MAPS}/c", {"metadata": {"finalizers": None}}),
    _watch("since a version", SINCE),
    _watch("by label", f"{SINCE}&labelSelector=env%3Dprod"),
    _watch("by the other label", f"{SINCE}&labelSelector=env%3Dtest"),
    _watch("by name", f"{SINCE}&fieldSelector=metadata.name%3Db"),
    _watch("by an unknown field", f"{SINCE}&fieldSelector=data.a%3D1"),
    _watch("by a broken label", f"{SINCE}&labelSelector=a%3D%3D%3D"),
    _watch("from now on, unsaid"),
    _watch("from any version", "resourceVersion=0"),
    _watch("as tables", SINCE, headers=TABLE),
    _watch("as tables from any version", "resourceVersion=0", headers=TABLE),
    _watch("of metadata", SINCE, headers=PARTIAL),
    _watch("from long ago", "resourceVersion=1"),
    _watch("from the future", "resourceVersion=99999999"),
    _watch("from letters", "resourceVersion=new"),
    _watch("with a negative version", "resourceVersion=-1"),
    _watch("with bookmarks", f"{SINCE}&allowWatchBookmarks=true", 4),
    _watch(
        "as a list",
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
    ),
    _watch(
        "as a list from any version",
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=0",
    ),
    _watch(
        "as a list since a version",
        f"sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&{SINCE}",
    ),
    _watch(
        "as a list of tables",
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
        headers=TABLE,
    ),
    _watch(
        "as a list by label",
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&labelSelector=env%3Dprod",
    ),
    _watch(
        "as a list without bookmarks", "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    ),
    _watch("as a list without a match", "sendInitialEvents=true&allowWatchBookmarks=true"),
    _watch("as no list", "sendInitialEvents=false&resourceVersionMatch=NotOlderThan"),
    _watch("as no list without a match", "sendInitialEvents=false"),
    _watch("a match alone", "resourceVersionMatch=NotOlderThan"),
    _watch("a match of another sort", "sendInitialEvents=true&resourceVersionMatch=Exact"),
    _watch("with a limit", f"{SINCE}&limit=1"),
    _watch("with a token", "continue=abc"),
    _watch(
        "of one by its path", "resourceVersion=0", path=f"/api/v1/watch/namespaces/{NS}/configmaps"
    ),
    _watch(
        "of one object by its path",
        "resourceVersion=0",
        path=f"/api/v1/watch/namespaces/{NS}/configmaps/a",
    ),
    get("watch said in letters", f"{MAPS}?watch=yes&timeoutSeconds=1"),
    get("watch said as a number", f"{MAPS}?watch=1&timeoutSeconds=1&resourceVersion=0"),
    get("watch denied", f"{MAPS}?watch=false"),
    get("a timeout of letters", f"{MAPS}?watch=true&timeoutSeconds=soon"),
    _watch(
        "while things happen",
        "labelSelector=live",
        3,
        during=(
            post("live is created", MAPS, config_map("live", labels={"live": "1"})),
            merge("live changes", f"{MAPS}/live", {"data": {"a": "2"}}),
            merge("live loses its label", f"{MAPS}/live", {"metadata": {"labels": None}}),
            merge("live changes unseen", f"{MAPS}/live", {"data": {"a": "3"}}),
            merge("live is back", f"{MAPS}/live", {"metadata": {"labels": {"live": "2"}}}),
            delete("live is deleted", f"{MAPS}/live"),
        ),
    ),
    _watch(
        "a table while things happen",
        "resourceVersion=0&fieldSelector=metadata.name%3Dlive",
        2,
        headers=TABLE,
        during=(
            post("live again", MAPS, config_map("live")),
            delete("live gone", f"{MAPS}/live"),
        ),
    ),
    _watch(
        "across namespaces while things happen",
        "labelSelector=far",
        2,
        path="/api/v1/configmaps",
        during=(
            post("far", core("default", "configmaps"), config_map("far", labels={"far": "1"})),
            delete("far gone", f"{core('default', 'configmaps')}/far"),
        ),
    ),
)
