"""The pages of jobs in a real browser, on the embedded API server and on a real one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.support.apiserver import ApiServer
from tests.support.console import Console, chromium, watched_page

from lockstep.kube.crds import ensure_crds


async def _add_kinds(server: ApiServer) -> None:
    async with server.client() as client:
        await ensure_crds(client)


@pytest.mark.soak
def test_jobs_are_submitted_and_deleted_in_a_browser(any_server: ApiServer, tmp_path: Path) -> None:
    asyncio.run(_add_kinds(any_server))
    console = Console(any_server, tmp_path / "console")
    try:
        # Not as a fixture: the browser's event loop would be in the way of starting the server.
        with chromium() as browser, watched_page(browser) as page:
            page.goto(console.link())
            expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
            page.get_by_role("link", name="Submit a job").first.click()
            page.get_by_label("Name", exact=True).fill("Not A Name")
            page.get_by_role("textbox", name="Command").fill("python train.py")
            expect(page.locator("#name-error, [role=alert]").first).to_contain_text("Not A Name")
            page.get_by_label("Name", exact=True).fill("digits")
            page.get_by_role("button", name="Submit").click()
            expect(page.locator("h1")).to_contain_text("digits")
            page.get_by_role("button", name="Cancel").click()
            page.get_by_role("button", name="Delete it").click()
            expect(page.get_by_text("There is no such job any more.")).to_be_visible()
    finally:
        console.stop()
