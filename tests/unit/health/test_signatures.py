"""Each signature fits its own sample, and says what its source says."""

import pytest

from lockstep.health.core.signatures import SIGNATURES, match


@pytest.mark.parametrize("one", SIGNATURES, ids=[s.pattern[:60] for s in SIGNATURES])
def test_a_sample_is_taken_by_its_own_signature(one):
    assert match(one.sample, kernel=one.where == "kernel") is one


@pytest.mark.parametrize("one", SIGNATURES, ids=[s.pattern[:60] for s in SIGNATURES])
def test_a_signature_says_where_it_comes_from(one):
    assert one.source.startswith("https://")
    assert 0 < one.confidence < 1


def test_user_errors_ask_for_no_isolation():
    assert not [
        s for s in SIGNATURES if s.class_ == "user" and s.action in ("isolate_node", "reset_gpu")
    ]


@pytest.mark.parametrize("line", ["", "a" * 100_000, "\x00\xff", "Xid", "usb 1-1: new device"])
def test_a_line_that_says_nothing_fits_nothing(line):
    assert match(line, kernel=True) is None
