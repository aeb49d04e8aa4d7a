"""Each line of public issues is taken by the signature that names its cause."""

import pytest
from tests.support.signatures import SAMPLES, Sample

from lockstep.health.core.signature import Signature
from lockstep.health.core.signatures import SIGNATURES, match


def taken_by(one: Sample) -> Signature | None:
    return match(one.line, kernel=one.where == "kernel")


@pytest.mark.parametrize("one", SAMPLES, ids=[s.line[:60] for s in SAMPLES])
def test_a_published_line_has_the_cause_that_its_source_says(one):
    found = taken_by(one)
    assert found is not None
    assert (found.cause, found.where) == (one.cause, one.where)
    assert one.source.startswith("https://")


def test_each_signature_takes_a_published_line():
    used = {id(taken_by(one)) for one in SAMPLES}
    assert [one.pattern for one in SIGNATURES if id(one) not in used] == []
    assert all(0 < one.verdict.confidence < 1 for one in SIGNATURES)


def test_user_errors_ask_for_no_isolation():
    acts = {one.verdict.action for one in SIGNATURES if one.verdict.class_ == "user"}
    assert not acts & {"isolate_node", "reset_gpu"}


@pytest.mark.parametrize("line", ["", "a" * 100_000, "\x00\xff", "Xid", "usb 1-1: new device"])
def test_a_line_that_says_nothing_fits_nothing(line):
    assert match(line, kernel=True) is None
