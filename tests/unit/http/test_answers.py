"""Requests as they are written, and answers read from pieces of any size."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.http.answers import (
    HEAD_LIMIT,
    AnswerReader,
    ProtocolError,
    Request,
    write_request,
)


@dataclass(frozen=True)
class Answer:
    """An answer on the wire and what it means."""

    wire: bytes
    status: int
    body: bytes
    keep_alive: bool = True
    method: str = "GET"
    ends_with_connection: bool = False


OK = b"HTTP/1.1 200 OK\r\n"
ANSWERS = {
    "length": Answer(OK + b"Content-Length: 5\r\n\r\nhello", 200, b"hello"),
    "empty": Answer(OK + b"Content-Length: 0\r\n\r\n", 200, b""),
    "no reason": Answer(b"HTTP/1.1 201\r\nContent-Length: 1\r\n\r\nx", 201, b"x"),
    "chunks": Answer(
        OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n",
        200,
        b"abc0123456789",
    ),
    "line breaks within chunks": Answer(
        OK + b"Transfer-Encoding: Chunked\r\n\r\n4\r\n\r\n\r\n\r\n2\r\n0\r\r\n0\r\n\r\n",
        200,
        b"\r\n\r\n0\r",
    ),
    "trailers": Answer(
        OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX: y\r\nZ: 1\r\n\r\n", 200, b"a"
    ),
    "no content": Answer(b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
    "not modified": Answer(b"HTTP/1.1 304 X\r\nContent-Length: 7\r\n\r\n", 304, b""),
    "head": Answer(OK + b"Content-Length: 7\r\n\r\n", 200, b"", method="HEAD"),
    "interim": Answer(
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nA: b\r\n\r\n"
        + OK
        + b"Content-Length: 2\r\n\r\nok",
        200,
        b"ok",
    ),
    "closing": Answer(
        OK + b"Connection: close\r\nContent-Length: 2\r\n\r\nok", 200, b"ok", keep_alive=False
    ),
    "until the end": Answer(
        OK + b"\r\nall of it", 200, b"all of it", keep_alive=False, ends_with_connection=True
    ),
    "old": Answer(b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n1", 200, b"1", keep_alive=False),
}


@given(st.sampled_from(sorted(ANSWERS)), st.data())
def test_an_answer_means_the_same_however_it_is_cut(name: str, data: st.DataObject) -> None:
    answer = ANSWERS[name]
    cuts = data.draw(st.lists(st.integers(0, len(answer.wire)), max_size=12))
    places = [0, *sorted(cuts), len(answer.wire)]
    reader = AnswerReader(answer.method)
    body = b"".join(reader.feed(answer.wire[a:b]) for a, b in pairwise(places) if a < b)
    assert reader.complete is not answer.ends_with_connection
    assert reader.end()
    assert (reader.status, body, reader.keep_alive) == (
        answer.status,
        answer.body,
        answer.keep_alive,
    )


@given(st.sampled_from(sorted(ANSWERS)), st.data())
def test_an_answer_that_breaks_off_is_not_complete(name: str, data: st.DataObject) -> None:
    answer = ANSWERS[name]
    if answer.ends_with_connection:
        return
    reader = AnswerReader(answer.method)
    reader.feed(answer.wire[: data.draw(st.integers(0, len(answer.wire) - 1))])
    assert not reader.end()


@pytest.mark.parametrize(
    "wire",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\n\r\n",
        OK + b"no colon\r\n\r\n",
        OK + b"Name : value\r\n\r\n",
        OK + b" folded: value\r\n\r\n",
        OK + b"Content-Length: -1\r\n\r\n",
        OK + b"Content-Length: 1, 1\r\n\r\n",
        OK + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\n1",
        OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
        OK + b"Content-Length: 1\r\n\r\nab",
        OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nmore",
        OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"1" * (HEAD_LIMIT + 1),
        OK + b"A: " + b"b" * HEAD_LIMIT,
        OK + b"A: " + b"b" * HEAD_LIMIT + b"\r\n\r\n",
        b"HTTP/1.1 204 X\r\n\r\nbody",
    ],
    ids=lambda wire: repr(wire[:70]),
)
def test_what_is_no_answer_or_ambiguous_is_refused(wire: bytes) -> None:
    with pytest.raises(ProtocolError):
        AnswerReader("GET").feed(wire)


def test_names_of_headers_disregard_case_and_repetitions_are_joined() -> None:
    reader = AnswerReader("GET")
    reader.feed(OK + b"retry-AFTER:  3 \r\nVary: a\r\nVary: b\r\nContent-Length: 0\r\n\r\n")
    assert reader.headers["Retry-After"] == "3"
    assert reader.headers.get("VARY") == "a, b"
    assert "x" not in reader.headers
    assert sorted(reader.headers) == ["content-length", "retry-after", "vary"]


@pytest.mark.parametrize(
    ("request_", "wire"),
    [
        (
            Request("GET", "/a?b=c", {"Accept": "x"}),
            b"GET /p/a?b=c HTTP/1.1\r\nHost: h:1\r\nAccept: x\r\n\r\n",
        ),
        (
            Request("POST", "/a", {}, b"{}\n"),
            b"POST /p/a HTTP/1.1\r\nHost: h:1\r\nContent-Length: 3\r\n\r\n{}\n",
        ),
        (
            Request("DELETE", "/a", {}),
            b"DELETE /p/a HTTP/1.1\r\nHost: h:1\r\nContent-Length: 0\r\n\r\n",
        ),
    ],
    ids=["without a body", "with a body", "a write without a body"],
)
def test_a_request_on_the_wire(request_: Request, wire: bytes) -> None:
    assert write_request(request_, "h:1", "/p") == wire


@pytest.mark.parametrize(
    "request_",
    [
        Request("GET", "/a HTTP/1.1\r\nX: y", {}),
        Request("GET", "/a", {"Authorization": "Bearer x\r\nX: y"}),
        Request("GET", "/a", {"A": "b\n"}),
        Request("GET", "/a", {"A": "b\r"}),
    ],
    ids=["target", "header", "line feed", "carriage return"],
)
def test_nothing_can_be_smuggled_into_a_request(request_: Request) -> None:
    with pytest.raises(ValueError, match="control character"):
        write_request(request_, "h")


def test_a_long_body_may_come_with_the_head() -> None:
    reader = AnswerReader("GET")
    body = b"x" * (4 * HEAD_LIMIT)
    assert reader.feed(OK + b"Content-Length: %d\r\n\r\n" % len(body) + body) == body
    assert reader.complete
