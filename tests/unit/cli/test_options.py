"""Options that are declared in short, and in groups, are the command's own."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
from typer.testing import CliRunner

from lockstep.cli import connect
from lockstep.cli.app import App, AtLeast
from lockstep.cli.connect import InNamespace
from lockstep.cli.target import Only, Target


@dataclass(frozen=True, slots=True)
class Size:
    depth: Annotated[int, "--deep", AtLeast(1), "How deep."]
    width: Annotated[int, range(9), "How wide."] = 4
    unit: str = "m"


@dataclass(frozen=True, slots=True)
class Where:
    near: Annotated[str, "Near to it."] = "here"
    far: Annotated[str, "Far from it."] = "there"


@pytest.fixture
def app():
    app = App()

    @app.command()
    def dig(
        place: Annotated[str, "PLACE", "Where to dig.", lambda ctx, incomplete: ["here"]],
        *,
        fast: Annotated[bool, "--fast", "Not slowly."] = False,
        size: Size,
        where: Annotated[Where, Only("far")],
        names: Annotated[list[str] | None, "--name", "-n", "K=V", "Its names."] = None,
    ) -> None:
        """Dig."""
        print(place, fast, size, where, names)

    return app


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ["p", "--deep", "2"],
            "p False Size(depth=2, width=4, unit='m') Where(near='here', far='there') None",
        ),
        (
            ["p", "--width=3", "--name=a", "--name=b", "--deep=1", "--fast", "--far=x"],
            "p True Size(depth=1, width=3, unit='m') Where(near='here', far='x') ['a', 'b']",
        ),
    ],
)
def test_a_group_is_made_of_its_options(app, arguments, told):
    done = CliRunner().invoke(app, arguments)
    assert (done.exit_code, done.output.strip()) == (0, told)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["here"], "Missing option '--deep'"),
        (["here", "--deep", "0"], "'--deep': Input should be greater than or equal to 1"),
        (["here", "--deep", "1", "--width", "9"], "'--width': Input should be less than or equal"),
        (["here", "--deep", "1", "--size", "1"], "No such option: --size"),
        (["here", "--deep", "1", "--unit", "km"], "No such option: --unit"),
        (["here", "--deep", "1", "--near", "x"], "No such option: --near"),
    ],
)
def test_options_of_a_group_are_checked_like_any(app, arguments, told):
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2
    assert told in done.output


def test_help_keeps_the_order_in_which_they_stand(app):
    text = CliRunner().invoke(app, ["--help"]).output
    assert "Dig." in text
    assert "{PLACE}" in text.splitlines()[0]
    assert "Where to dig." in text
    assert "-n, --name K=V" in text
    places = [text.index(told) for told in ("--fast", "How deep.", "How wide.", "Far", "--name")]
    assert places == sorted(places)


def test_a_group_of_commands_shows_them_when_called_alone():
    app = App("Dig and fill.")
    app.command()(lambda: None)
    app.command("fill")(lambda: None)
    assert "Dig and fill." in CliRunner().invoke(app, []).output


def test_a_coroutine_is_connected_as_its_last_options_say(monkeypatch):
    app = App()

    @app.command()
    async def show(session: InNamespace, name: Annotated[str, "Its name."]) -> None:
        print(name, session)

    monkeypatch.setattr(connect, "run", lambda target, work: asyncio.run(work(target)))
    done = CliRunner().invoke(app, ["digits", "-n", "team", "--kubeconfig", "there"])
    assert done.output.strip() == f"digits {Target(Path('there'), None, 'team')}"
    assert "--all-namespaces" not in CliRunner().invoke(app, ["--help"]).output
