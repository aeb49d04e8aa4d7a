"""The daily path in a real browser: sign in, see why a job waits, submit one, watch it, end it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.support.console import watched_page
from tests.support.control_plane import ControlPlane

from lockstep.console.views.tables import KINDS


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    running = ControlPlane(tmp_path_factory.mktemp("up") / "data", "--simulate", "2x8").start()
    yield running
    running.stop()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with watched_page(browser) as page:
        yield page


def link(plane: ControlPlane) -> str:
    return plane.ok("console", "--print", "--data", str(plane.data)).strip()


def test_a_job_from_the_form_to_its_end(plane: ControlPlane, page: Page) -> None:
    plane.ok("submit", "plain", "--name", "wide", "--workers", "3", "--gpus", "8", "--simulated",
             "--", "train")  # fmt: skip
    page.goto(link(plane))
    page.get_by_role("link", name="wide", exact=True).click()
    expect(page.get_by_role("heading", name="Why it waits")).to_be_visible()
    expect(page.locator(".reason")).to_contain_text("needs 3 pods x 8 GPUs")

    page.get_by_role("link", name="Submit a job").click()
    page.get_by_label("Name", exact=True).fill("hello")
    page.get_by_label("Framework").select_option("plain")
    page.get_by_role("textbox", name="Command").fill("echo from the pod\nsleep 1000")
    expect(page.get_by_text("The API server would accept it.")).to_be_visible()
    page.get_by_role("button", name="Submit").click()
    expect(page.locator("h1 .badge")).to_have_text("Running")
    expect(page.get_by_role("log")).to_contain_text("from the pod")
    assert plane.phase("hello") == "Running"

    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Delete it").click()
    expect(page.get_by_text("There is no such job any more.")).to_be_visible()
    assert "hello" not in plane.ok("list")


def test_every_other_kind_has_a_page(plane: ControlPlane, page: Page) -> None:
    page.goto(link(plane))
    pages = page.get_by_role("navigation").get_by_role("link")
    expect(pages).to_have_count(2 + len(KINDS))
    for name in pages.all_inner_texts()[2:]:
        page.get_by_role("link", name=name, exact=True).click()
        expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()
        expect(page.get_by_role("table")).to_be_visible()
        expect(page.get_by_role("alert")).to_have_count(0)
    page.get_by_role("link", name="Nodes", exact=True).click()
    expect(page.get_by_role("row").filter(has_text="sim-0-0-0")).to_be_visible()
    page.get_by_label("Search names").fill("nothing-like-it")
    expect(page.get_by_text("Nothing matches.")).to_be_visible()


def test_two_tabs_share_one_stream_and_both_are_live(plane: ControlPlane, page: Page) -> None:
    page.goto(link(plane))
    other = page.context.new_page()
    other.goto(page.url.partition("#")[0])
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    plane.ok("submit", "plain", "--name", "seen", "--simulated", "--", "train")
    for tab in (page, other):
        expect(tab.get_by_role("link", name="seen", exact=True)).to_be_visible()


def test_a_killed_console_is_back_and_the_page_recovers(plane: ControlPlane, page: Page) -> None:
    page.goto(link(plane))
    expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
    killed = plane.child("console")
    assert killed is not None
    os.kill(killed, signal.SIGKILL)
    # Sessions live in the process: the page asks to sign in, and does not hang.
    expect(page.get_by_label("Bearer token")).to_be_visible()
