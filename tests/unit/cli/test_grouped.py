"""Options in groups are the command's own."""

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from lockstep.cli.grouped import grouped


@dataclass(frozen=True, slots=True)
class Size:
    depth: Annotated[int, typer.Option("--deep", min=1, help="How deep.")]
    width: Annotated[int, typer.Option(help="How wide.")] = 4


@pytest.fixture
def app():
    app = typer.Typer(rich_markup_mode=None)

    @app.command()
    @grouped
    def dig(
        *,
        place: Annotated[str, typer.Argument()],
        fast: Annotated[bool, typer.Option("--fast")] = False,
        size: Size,
        names: Annotated[list[str] | None, typer.Option("--name")] = None,
    ) -> None:
        """Dig."""
        print(place, fast, size, names)

    return app


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["here", "--deep", "2"], "here False Size(depth=2, width=4) None"),
        (
            ["here", "--width", "3", "--name", "a", "--name", "b", "--deep", "1", "--fast"],
            "here True Size(depth=1, width=3) ['a', 'b']",
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
        (["here", "--deep", "1", "--size", "1"], "No such option: --size"),
    ],
)
def test_options_of_a_group_are_checked_like_any(app, arguments, told):
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2
    assert told in done.output


def test_help_keeps_the_order_in_which_they_stand(app):
    text = CliRunner().invoke(app, ["--help"]).output
    assert "Dig." in text
    places = [text.index(option) for option in ("--fast", "--deep", "--width", "--name")]
    assert places == sorted(places)
