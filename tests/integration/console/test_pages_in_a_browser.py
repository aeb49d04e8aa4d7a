"""Every page with something to show: its main task, both themes, both widths, and no barrier."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.support import shown_world
from tests.support.apiserver import ApiServer
from tests.support.console import watched_page
from tests.support.control_plane import ControlPlane

from lockstep.console.views.kinds import ALL

AXE = Path(__file__).parents[2] / "support/axe/axe.min.js"
SHAPE = "8x8,nodes-per-leaf=4,leaves-per-spine=2"
PAGES = (
    "/", "/jobs", "/submit", "/map", "/queues", "/nodes", "/waste", "/cost", "/rights", "/audit",
    *(f"/{kind.word}" for kind in ALL), "/jobs/default/llm-70b", "/jobs/default/llm-7b",
    "/jobs/default/llm-7b?tab=ranks", "/jobs/default/llm-7b?tab=yaml", "/nodes/sim-0-0-0",
    "/health/-/sim-0-1-3", "/pipelines/default/digits-1", "/teams/-/vision",
    "/notebooks/default/ana", "/services/default/iris", "/queues/new", "/nothing",
)  # fmt: skip


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    running = ControlPlane(tmp_path_factory.mktemp("up") / "data", "--simulate", SHAPE).start()
    server = ApiServer(running.data, int(running.ready_line.split()[1].rpartition(":")[2]))
    shown_world.fill(server)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def signed_in(plane: ControlPlane, browser: Browser) -> Iterator[Page]:
    with watched_page(browser) as page:
        page.goto(plane.ok("console", "--print", "--data", str(plane.data)).strip())
        expect(page.get_by_role("button", name="Sign out")).to_be_visible()
        yield page


@pytest.fixture
def page(signed_in: Page) -> Page:
    signed_in.set_viewport_size({"width": 1440, "height": 900})
    return signed_in


def visit(page: Page, path: str) -> None:
    base = "/".join(page.url.split("/")[:3])
    page.goto(base + path)
    expect(page.locator("h1")).to_be_visible()
    expect(page.locator("[aria-busy=true]")).to_have_count(0)


@pytest.mark.parametrize("theme", ["light", pytest.param("dark", marks=pytest.mark.soak)])
def test_no_page_has_a_barrier(page: Page, theme: str) -> None:
    """Chinese in the dark, so that the other catalogue is drawn, too."""
    found: dict[str, Any] = {}
    language = {"light": "en", "dark": "zh"}[theme]
    page.evaluate("([t, l]) => { localStorage.theme = t; localStorage.language = l }",
                  [theme, language])  # fmt: skip
    for path in PAGES:
        visit(page, path)
        page.evaluate(AXE.read_text() + "; undefined")
        wrong = page.evaluate(
            "async () => (await axe.run({resultTypes: ['violations']})).violations"
        )
        if wrong:
            found[path] = [(one["id"], one["nodes"][0]["html"][:160]) for one in wrong]
    page.evaluate("() => { localStorage.clear() }")
    assert not found, json.dumps(found, indent=1)


@pytest.mark.parametrize("path", ["/", "/jobs", "/map", "/queues", "/jobs/default/llm-70b"])
def test_no_page_is_wider_than_a_phone(page: Page, path: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    visit(page, path)
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 390


def test_the_home_page_says_what_waits_and_what_is_left(page: Page) -> None:
    visit(page, "/")
    expect(page.locator(".cards")).to_contain_text("llm-70b")
    expect(page.locator(".cards")).to_contain_text("GPUs of the guaranteed share are left")
    expect(page.locator(".advice")).to_contain_text("llm-70b room in the cluster")


def test_the_map_counts_colours_and_leads_to_a_node(page: Page) -> None:
    visit(page, "/map")
    canvas = page.locator("canvas")
    expect(canvas).to_have_attribute("aria-label", "Map of 9 nodes with 64 GPUs: 55 held, 1 free, "
                                     "8 out of use")  # fmt: skip
    page.get_by_role("button", name="Owner").click()
    assert "colour=owner" in page.url
    page.get_by_label("Find a node").fill("sim-0-1-2")
    expect(page.locator(".tip")).to_contain_text("sim-0-1-2")
    canvas.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="sim-0-1-2")).to_be_visible()


def test_a_placement_is_tried_on_the_map(page: Page) -> None:
    visit(page, "/map")
    form = page.locator("form.whatif")
    form.get_by_label("Workers").fill("1")
    form.get_by_label("GPU").fill("1")
    form.get_by_role("button", name="Try").click()
    expect(page.locator(".said")).to_contain_text("would start now, on sim-")


def test_a_plan_for_queues_is_tried_and_applied(page: Page, plane: ControlPlane) -> None:
    visit(page, "/queues")
    row = page.get_by_role("row").filter(has_text="language")
    expect(row).to_contain_text("24")
    page.get_by_label("Guaranteed GPUs of language").fill("30")
    page.get_by_role("button", name="Try on the simulator").click()
    expect(page.get_by_role("heading", name="What would change now")).to_be_visible()
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_text("queues planned differently")).to_have_count(0)
    assert plane.get("queue/language")["spec"]["guaranteed"] == {"nvidia.com/gpu": 30}


def test_a_node_is_cordoned_and_drained(page: Page, plane: ControlPlane) -> None:
    visit(page, "/nodes/sim-0-1-0")
    page.get_by_role("button", name="Cordon", exact=True).click()
    expect(page.locator("h1 .badge")).to_have_text("Cordoned")
    assert plane.get("node/sim-0-1-0")["spec"]["unschedulable"] is True
    page.get_by_role("button", name="Drain").first.click()
    expect(page.locator("dialog[open]")).to_contain_text("pods are asked to end")
    page.locator("dialog[open]").get_by_role("button", name="Drain").click()
    expect(page.locator(".notice").first).to_contain_text("asked to end")
    page.get_by_role("button", name="Uncordon").click()
    expect(page.locator("h1 .badge")).to_have_text("Ready")


def test_a_yaml_edit_changes_an_object_and_shows_conflicts(page: Page, plane: ControlPlane) -> None:
    visit(page, "/teams/-/vision?tab=yaml")
    text = page.get_by_role("textbox", name="Object as YAML")
    written = text.input_value()
    text.fill(written.replace("name: ben", "name: zoe"))
    page.get_by_role("button", name="Check only").click()
    expect(page.get_by_text("The API server would accept it.")).to_be_visible()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    assert "zoe" in json.dumps(plane.get("team/vision"))
    text.fill(written.replace("name: ana", "name: eve"))
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".difference")).to_contain_text("+  - name: eve")
    expect(page.locator(".difference")).to_contain_text("zoe")


def test_a_new_object_with_an_unknown_field_is_refused(page: Page) -> None:
    visit(page, "/prices/new")
    text = page.get_by_role("textbox", name="Object as YAML")
    text.fill(text.input_value().replace("name: cloud", "name: spare") + "  surprise: 1\n")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("alert")).to_contain_text('unknown field "spec.surprise"')
    page.reload()
    expect(text).to_have_value(text.input_value())
    text.fill(text.input_value().replace("  surprise: 1\n", ""))
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="spare")).to_be_visible()


def test_a_suspended_pipeline_is_let_go_on(page: Page) -> None:
    visit(page, "/pipelines/default/digits-1")
    expect(page.locator(".graph")).to_contain_text("waits to be resumed")
    page.get_by_role("button", name="Let it go on").click()
    expect(page.locator(".facts .badge")).to_have_text("Succeeded")


def test_columns_are_hidden_and_lists_are_saved_as_csv(page: Page) -> None:
    visit(page, "/jobs?sort=name")
    with page.expect_download() as saved:
        page.get_by_role("link", name="Save as CSV").click()
    lines = Path(saved.value.path()).read_text().splitlines()
    assert lines[0].startswith("name,namespace,uid,phase")
    assert [line.split(",")[0] for line in lines[1:]][:2] == ["broken", "detector"]
    page.get_by_text("Columns").click()
    page.get_by_label("Framework").uncheck()
    expect(page.get_by_role("columnheader", name="Framework")).to_have_count(0)
    page.evaluate("() => { localStorage.clear() }")


def test_jobs_are_reached_by_keyboard_alone(page: Page) -> None:
    visit(page, "/jobs?sort=name")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "detector":
            break
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("detector")
    page.get_by_role("tab", name="About").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Log")).to_be_focused()


KEYBOARD = """() => {
  const reachable = 'a[href], button, input, select, textarea, [tabindex="0"], summary, canvas';
  const missed = [];
  for (const one of document.querySelectorAll('main ' + reachable.split(', ').join(', main '))) {
    if (one.disabled || one.tabIndex < 0 || !one.checkVisibility()) continue;
    if (one.type === 'radio' && !one.checked) continue;
    if (!one.dataset.reached) missed.push(one.outerHTML.slice(0, 120));
  }
  return missed;
}"""


@pytest.mark.soak
@pytest.mark.parametrize("path", PAGES)
def test_every_control_of_a_page_is_reached_by_keyboard(page: Page, path: str) -> None:
    """Tab alone reaches all that a mouse can click, shows where it is, and is never trapped."""
    visit(page, path)
    page.evaluate("document.activeElement.blur()")
    told = """() => { const one = document.activeElement;
      if (one === document.body) return 'body';
      const again = one.dataset.reached; one.dataset.reached = '1';
      const drawn = getComputedStyle(one);
      const seen = drawn.outlineStyle !== 'none' || drawn.boxShadow !== 'none';
      return again ? 'again' : seen ? 'seen' : 'unseen ' + one.outerHTML.slice(0, 120); }"""
    for _ in range(400):
        if page.evaluate("document.activeElement.matches('textarea.yaml')"):
            page.keyboard.press("Escape")  # there Tab indents, as the text below says
        page.keyboard.press("Tab")
        where = page.evaluate(told)
        assert not where.startswith("unseen"), where
        if where in ("body", "again"):
            break
    assert page.evaluate(KEYBOARD) == []


@pytest.mark.soak
def test_main_tasks_are_done_by_keyboard_alone(page: Page, plane: ControlPlane) -> None:
    def to(name: str, role: Any = "button") -> None:
        """Tab until the control has the focus."""
        wanted = page.get_by_role(role, name=name, exact=True).first
        expect(wanted).to_be_enabled()
        for _ in range(200):
            page.keyboard.press("Tab")
            if wanted.evaluate("one => one === document.activeElement"):
                return
        raise AssertionError(f"{role} {name} is not reached")

    visit(page, "/submit")
    to("Name", "textbox")
    page.keyboard.press("Control+a")
    page.keyboard.type("by-keys")
    to("Command", "textbox")
    page.keyboard.type("true")
    expect(page.get_by_text("The API server would accept it.")).to_be_visible()
    to("Submit")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("by-keys")
    to("Cancel")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    to("Delete it")
    page.keyboard.press("Enter")
    expect(page.get_by_text("There is no such job any more.")).to_be_visible()

    visit(page, "/nodes/sim-0-1-1")
    to("Cordon")
    page.keyboard.press("Space")
    expect(page.locator("h1 .badge")).to_have_text("Cordoned")
    to("Uncordon")
    page.keyboard.press("Space")
    expect(page.locator("h1 .badge")).to_have_text("Ready")

    visit(page, "/queues")
    before = plane.get("queue/language")["spec"]["guaranteed"]["nvidia.com/gpu"]
    to("Guaranteed GPUs of language", "slider")
    page.keyboard.press("ArrowRight")
    to("Try on the simulator")
    page.keyboard.press("Enter")
    to("Apply")
    page.keyboard.press("Enter")
    expect(page.get_by_text("queues planned differently")).to_have_count(0)
    assert plane.get("queue/language")["spec"]["guaranteed"]["nvidia.com/gpu"] > before


def test_the_audit_tells_changes_by_any_client(page: Page, plane: ControlPlane) -> None:
    plane.ok("submit", "plain", "--name", "audited", "--simulated", "--", "train")
    visit(page, "/audit?q=audited")
    expect(page.get_by_role("row").filter(has_text="default/audited")).to_contain_text("create")
