"""The daily path in a real browser: sign in, see why a job waits, submit one, watch it, end it."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Route, expect
from tests.support.console import Visitor, watched_page
from tests.support.control_plane import ControlPlane
from tests.support.waiting import eventually_sync


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
    return plane.ok("console", "--print").strip()


def enter(page: Page, plane: ControlPlane) -> None:
    page.goto(link(plane))
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()


def test_a_job_from_the_form_to_its_end(plane: ControlPlane, page: Page) -> None:
    plane.ok("submit", "plain", "--name", "wide", "--workers", "3", "--gpus", "8", "--simulated",
             "--", "train")  # fmt: skip
    enter(page, plane)
    page.get_by_role("navigation").get_by_role("link", name="Jobs", exact=True).click()
    page.get_by_role("link", name="wide", exact=True).click()
    expect(page.get_by_role("heading", name="Why it waits")).to_be_visible()
    expect(page.locator(".reason")).to_contain_text("needs 3 pods x 8 GPUs")

    page.get_by_role("link", name="Submit a job").click()
    page.get_by_label("Name", exact=True).fill("hello")
    page.get_by_label("Framework").select_option("plain")
    page.get_by_role("textbox", name="Command").fill("echo from the pod\nsleep 1000")
    expect(page.get_by_text("The API server would accept it.")).to_be_visible()
    expect(page.get_by_role("textbox", name="YAML")).to_have_value(re_contains("name: hello"))
    page.get_by_role("button", name="Submit").click()
    expect(page.locator("h1 .badge")).to_have_text("Running")
    expect(page.get_by_role("log")).to_contain_text("from the pod")
    assert plane.phase("hello") == "Running"

    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Delete it").click()
    expect(page.get_by_text("This is its record.")).to_be_visible()
    expect(page.get_by_role("heading", name="hello")).to_be_visible()
    expect(page.get_by_role("log")).to_contain_text("from the pod")
    assert "hello" not in plane.ok("list")
    told = plane.ok("report", "-o", "json")
    assert json.loads(told)["total"]["gpuHours"] > 0


def re_contains(text: str) -> Any:
    return re.compile(re.escape(text))


def test_form_yaml_and_script_follow_each_other(plane: ControlPlane, page: Page) -> None:
    enter(page, plane)
    page.get_by_role("link", name="Submit a job").first.click()
    page.get_by_role("textbox", name="Command").fill("python train.py")
    yaml = page.get_by_role("textbox", name="YAML")
    expect(yaml).to_have_value(re_contains("train.py"))
    yaml.fill(yaml.input_value().replace("replicas: 1", "replicas: 7"))
    expect(page.get_by_label("Workers", exact=True)).to_have_value("7")
    page.get_by_role("tab", name="Python SDK").click()
    script = page.get_by_role("textbox", name="Python SDK")
    expect(script).to_have_value(re_contains("num_nodes=7"))
    script.fill(script.input_value().replace("num_nodes=7", "num_nodes=5"))
    expect(page.get_by_label("Workers", exact=True)).to_have_value("5")
    page.reload()
    expect(page.get_by_label("Workers", exact=True)).to_have_value("5")
    page.get_by_label("Workers", exact=True).fill("none")
    expect(page.locator("#workers-error")).to_contain_text("is no whole number from 1")
    page.get_by_label("Workers", exact=True).fill("1")
    expect(page.get_by_text("The API server would accept it.")).to_be_visible()
    page.get_by_role("button", name="Ask the simulator").click()
    expect(page.locator(".said")).to_contain_text("would start")


def test_a_job_is_scaled_suspended_and_cloned(plane: ControlPlane, page: Page) -> None:
    plane.ok("submit", "plain", "--name", "grow", "--simulated", "--", "train")
    enter(page, plane)
    page.goto(page.url.partition("/#")[0].rstrip("/") + "/jobs/default/grow")
    expect(page.locator("h1 .badge")).to_have_text("Running")
    page.get_by_label("Workers").fill("2")
    page.get_by_role("button", name="Scale").click()
    expect(page.locator(".facts")).to_contain_text("2/2")
    page.get_by_role("button", name="Suspend").click()
    expect(page.locator("h1 .badge")).to_have_text("Suspended")
    page.get_by_role("button", name="Clone").click()
    expect(page.get_by_label("Name", exact=True)).to_have_value("grow-copy")
    expect(page.get_by_text("The API server would accept it.")).to_be_visible()


APP = """
import asyncio, socket, sys
from aiohttp import web
async def page(request):
    return web.Response(text="<body><script>"
        "new WebSocket('ws://' + location.host + '/echo').onopen = "
        "function() { this.onmessage = e => document.body.textContent = e.data;"
        " this.send(String(document.cookie)) }</script>", content_type="text/html")
async def echo(request):
    here = web.WebSocketResponse()
    await here.prepare(request)
    async for message in here:
        seen = sorted(request.cookies)
        await here.send_str(f"heard {message.data!r} with {seen}")
    return here
app = web.Application()
app.add_routes([web.get("/", page), web.get("/echo", echo)])
web.run_app(app, host="0.0.0.0", port=int(sys.argv[1]), print=None)
"""


def test_an_app_runs_at_an_origin_of_its_own(plane: ControlPlane, browser: Browser) -> None:
    with socket.socket() as free:
        free.bind(("", 0))
        port = free.getsockname()[1]
    plane.ok("submit", "plain", "--name", "app", "--", "python", "-c", APP, str(port))
    plane.eventually_phase("app", "Running")
    context = browser.new_context()
    page = context.new_page()
    enter(page, plane)
    asked = """async ([port]) => (await (await fetch('/api/apps', {method: 'POST', headers:
      {'X-Lockstep-Console': '1'}, body: JSON.stringify({namespace: 'default',
      pod: 'app-worker-0', port})})).json()).url"""
    home, address = page.url, page.evaluate(asked, [port])
    assert ".apps.localhost:" in address

    def heard() -> bool:
        page.goto(page.url if "apps." in page.url else address)
        page.wait_for_timeout(500)  # the server in the pod may still be starting
        return "heard" in (page.locator("body").text_content() or "")

    eventually_sync(heard, 60.0, "the app answers over its WebSocket")
    # Neither the app's page nor its server ever sees a cookie of the console.
    expect(page.locator("body")).to_have_text("heard '' with []")
    stranger = Visitor(home).request("GET", "/", headers={"Host": urlsplit(page.url).netloc})
    assert stranger.status == 403
    context.close()


def test_twelve_tabs_share_one_stream_and_all_are_live(plane: ControlPlane, page: Page) -> None:
    enter(page, plane)
    address = page.url.partition("/#")[0].rstrip("/") + "/jobs"
    tabs = [page.context.new_page() for _ in range(12)]
    for tab in tabs:
        tab.goto(address)
    expect(tabs[-1].get_by_role("button", name="Sign out")).to_be_visible()
    plane.ok("submit", "plain", "--name", "seen", "--simulated", "--", "train")
    for tab in tabs:
        expect(tab.get_by_role("link", name="seen", exact=True)).to_be_visible()


def test_a_worker_that_did_not_load_is_asked_for_again(plane: ControlPlane, page: Page) -> None:
    asked: list[str] = []

    def twice_away(route: Route) -> None:
        asked.append(route.request.url)
        if len(asked) <= 2:
            route.abort()
        else:
            route.continue_()

    page.context.route("**/static/worker.js", twice_away)
    enter(page, plane)
    expect(page.get_by_text("The connection is lost")).to_have_count(0)
    assert len(asked) == 3


def test_a_killed_console_is_back_and_the_page_recovers(plane: ControlPlane, page: Page) -> None:
    enter(page, plane)
    killed = plane.child("console")
    assert killed is not None
    os.kill(killed, signal.SIGKILL)
    eventually_sync(lambda: plane.child("console") not in (None, killed), 60.0, "another console")
    # Sessions live in the process: the page asks to sign in, and does not hang.
    expect(page.get_by_label("Bearer token")).to_be_visible()
