"""Between bytes and views."""

from __future__ import annotations

import gc
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.api.core import PODS, Pod
from lockstep.api.gang import GANGS, Gang, GangSpec
from lockstep.api.meta import ObjectMeta
from lockstep.kube import codec
from lockstep.kube.codec import WatchEvent
from lockstep.kube.errors import Status, Undecodable
from lockstep.kube.lines import LineSplitter


def line(type_: str, obj: Any) -> bytes:
    return json.dumps({"type": type_, "object": obj}).encode()


def pod(name: str = "p", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "s",
            "resourceVersion": "7",
            "managedFields": [{"manager": "m"}],
        },
        "spec": spec,
    }


def test_fields_that_no_view_names_are_skipped() -> None:
    body = json.dumps({"metadata": {"resourceVersion": "9"}, "items": [pod(unknown=1)]}).encode()
    page, unreadable = codec.decode_page(Pod, body)
    assert page.items is not None
    assert [one.metadata.name for one in page.items] == ["p"]
    assert (page.metadata.resource_version, unreadable) == ("9", [])


def test_one_unreadable_object_does_not_hide_the_others() -> None:
    items = [pod("good"), pod("bad", nodeName=5)]
    body = json.dumps({"metadata": {"continue": "x"}, "items": items}).encode()
    page, [unreadable] = codec.decode_page(Pod, body)
    assert page.items is not None
    assert [one.metadata.name for one in page.items] == ["good"]
    assert page.metadata.next_page == "x"
    assert (unreadable.namespace, unreadable.name) == ("s", "bad")
    assert "$.spec.nodeName" in unreadable.problem


@pytest.mark.parametrize("body", [b"<html>", b"", b"[1]", b"\xff"])
def test_an_unreadable_answer_is_an_api_error(body: bytes) -> None:
    for read in (codec.decode, codec.decode_page, codec.decode_event):
        with pytest.raises(Undecodable, match="the answer is not a Pod"):
            read(Pod, body)


def test_a_field_that_does_not_fit_is_named() -> None:
    with pytest.raises(Undecodable, match=r"spec.nodeName"):
        codec.decode(Pod, json.dumps(pod(nodeName=5)).encode())


def test_a_null_is_as_good_as_a_field_left_out() -> None:
    odd = {**pod(nodeName=None, containers=[{"name": "c", "image": None}]), "status": None}
    plain = codec.decode(Pod, json.dumps(pod(containers=[{"name": "c"}])).encode())
    assert codec.decode(Pod, json.dumps(odd).encode()) == plain
    body = json.dumps({"metadata": {}, "items": [odd, pod("q")]}).encode()
    page, unreadable = codec.decode_page(Pod, body)
    assert page.items is not None
    assert (page.items[0], len(page.items), unreadable) == (plain, 2, [])
    assert codec.decode_event(Pod, line("ADDED", odd)) == WatchEvent("ADDED", plain, "7")


def test_a_list_without_items_is_empty() -> None:
    page, _ = codec.decode_page(Pod, b'{"metadata": {}, "items": null}')
    assert not page.items


@pytest.mark.parametrize("type_", ["ADDED", "MODIFIED", "DELETED"])
def test_changes_come_with_their_object(type_: str) -> None:
    event = codec.decode_event(Pod, line(type_, pod()))
    assert isinstance(event, WatchEvent)
    assert event.object is not None
    assert (event.type, event.object.metadata.name, event.resource_version) == (type_, "p", "7")


@pytest.mark.parametrize(("annotation", "synced"), [("true", True), (None, False)])
def test_bookmarks_need_not_look_like_the_kind(annotation: str | None, synced: bool) -> None:
    meta: dict[str, Any] = {"resourceVersion": "8"}
    if annotation:
        meta["annotations"] = {"k8s.io/initial-events-end": annotation}
    for type_ in (Pod, Gang):
        event = codec.decode_event(type_, line("BOOKMARK", {"metadata": meta, "spec": "?"}))
        assert event == WatchEvent("BOOKMARK", None, "8", synced=synced)


def test_an_error_is_its_status() -> None:
    status = {
        "kind": "Status",
        "metadata": {},
        "status": "Failure",
        "code": 410,
        "reason": "Expired",
    }
    event = codec.decode_event(Pod, line("ERROR", status))
    assert isinstance(event, Status)
    assert (event.code, event.reason) == (410, "Expired")


def test_an_event_whose_object_cannot_be_read_keeps_its_version() -> None:
    event = codec.decode_event(Pod, line("ADDED", pod(nodeName=5)))
    assert isinstance(event, WatchEvent)
    assert event.object is None
    assert event.resource_version == "7"
    assert event.unreadable is not None
    assert event.unreadable.name == "p"


def test_what_is_sent_says_what_it_is() -> None:
    gang = Gang(metadata=ObjectMeta(name="g"), spec=GangSpec(min_member=2))
    assert codec.with_identity(GANGS.api_version, GANGS.kind, gang) == {
        "apiVersion": "lockstep.dev/v1alpha1",
        "kind": "Gang",
        "metadata": {"name": "g"},
        "spec": {"minMember": 2},
    }
    given_ = {"metadata": {"name": "p"}}
    assert codec.with_identity(PODS.api_version, PODS.kind, given_)["kind"] == "Pod"
    assert given_ == {"metadata": {"name": "p"}}


def test_the_collector_rests_during_a_list_and_goes_on_afterwards() -> None:
    assert gc.isenabled()
    with codec.gc_paused():
        assert not gc.isenabled()
        with codec.gc_paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


@given(st.lists(st.binary(max_size=20).filter(lambda b: b"\n" not in b)), st.data())
def test_lines_are_the_same_however_they_are_cut(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(one + b"\n" for one in lines)
    splitter, found, position = LineSplitter(), [], 0
    while position < len(stream):
        size = data.draw(st.integers(1, len(stream) - position))
        found += splitter.feed(stream[position : position + size])
        position += size
    assert found == [one for one in lines if one]
