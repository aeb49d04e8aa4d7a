"""``advise``: why a job is slow, what proves it, and what mending it would gain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from lockstep.cli import kinds
from lockstep.cli.app import App
from lockstep.cli.completion import OneNamed
from lockstep.cli.connect import Session, run
from lockstep.cli.failure import BadInput, usage
from lockstep.cli.naming import job_of
from lockstep.cli.options import Namespaced, Output
from lockstep.cli.output import Format, show

if TYPE_CHECKING:
    from lockstep.cli.advising import Told
    from lockstep.insight.advice.judge import Verdict

app = App()

MOST_STEPS = 500


@app.command()
def advise(
    name: OneNamed,
    *,
    prove: Annotated[
        bool, "--prove", "Run short clones of the job, each with one thing altered, as proof."
    ] = False,
    experiments: Annotated[int, "With --prove: causes to try, at most."] = 2,
    steps: Annotated[int, "With --prove: steps of a clone."] = 40,
    patience: Annotated[
        float, "Seconds to wait for the job's first steps, or for a clone."
    ] = 120.0,
    output: Output = Format.TABLE,
    target: Namespaced,
) -> None:
    """Say why a job is slow, what that costs a day, which line it is, and what to change.

    The job runs on undisturbed. With --prove its clones wait in its queue at low priority, see its
    volumes read-only and end after a few dozen steps.

    \b
    Examples:
      lockstep advise llm
      lockstep advise llm --prove
      lockstep advise llm -o json
    """
    with usage("NAME"):
        wanted = kinds.single(name)
        if wanted.kind not in ("job", "pod"):
            raise ValueError(f"{wanted} is no job and no pod of one")
    if not 10 <= steps <= MOST_STEPS:
        raise BadInput(f"--steps: given {steps}; must be between 10 and {MOST_STEPS}")
    if not 1 <= experiments <= 8:
        raise BadInput(f"--experiments: given {experiments}; must be between 1 and 8")
    from lockstep.cli import advising

    async def ask(session: Session) -> Told:
        job = await job_of(session, wanted.name)
        asked = advising.Asked(job, prove, experiments, steps, patience)
        return await advising.advise(session, asked)

    told = run(target, ask)
    show(tree(told), lines(told), output)


def tree(told: Told) -> dict[str, Any]:
    """Return the advice as plain values."""
    return {
        "job": told.job,
        "state": told.advice.state,
        "stepSeconds": round(told.advice.step, 4),
        "verdicts": [_verdict(told, one) for one in told.advice.verdicts],
        "since": told.since,
        "notes": list(told.advice.notes),
    }


def _verdict(told: Told, one: Verdict) -> dict[str, Any]:
    from lockstep.insight.advice.causes import CAUSES

    known = CAUSES[one.cause]
    money = told.money_per_day(one.expected)
    return {
        "cause": one.cause,
        "words": known.words,
        "suspected": one.suspected,
        "confidence": one.confidence,
        "gain": one.gain,
        "proved": one.proved,
        "gainOfClone": one.measured,
        "moneyPerDay": None if money is None else {"amount": money, "currency": told.currency},
        "evidence": list(one.evidence),
        "line": one.line,
        "remedy": known.remedy,
        "patch": one.patch,
        "decides": known.decides if one.suspected else "",
    }


def lines(told: Told) -> Iterator[str]:
    """Yield the advice in words."""
    from lockstep.insight.advice.causes import CAUSES

    advice = told.advice
    if advice.step:
        each = f"{advice.step * 1000:.0f} ms"
        state = "waits" if advice.state == "idle" else f"is {advice.state}"
        yield f"{told.job}: a step takes {each}; the GPU {state}"
    yield from (f"note: {one}" for one in advice.notes)
    if told.since:
        yield told.since["words"]
    if not advice.verdicts and advice.step:
        yield "nothing found that is worth a change"
    for number, one in enumerate(advice.verdicts, 1):
        known = CAUSES[one.cause]
        how = "proved" if one.proved else "suspected" if one.suspected else "found"
        yield ""
        yield f"{number}. {one.cause}: {known.words} ({how}, confidence {one.confidence:.2f})"
        yield from (f"   {words}" for words in one.evidence)
        if one.line:
            yield f"   line: {one.line}"
        yield f"   remedy: {known.remedy}"
        if one.patch:
            yield f"   patch: {one.patch}"
        yield f"   gain: {_gain(told, one)}"
        if one.suspected:
            yield f"   what would decide: {known.decides}"


def _gain(told: Told, one: Verdict) -> str:
    words = f"{one.gain * 100:.0f} % of a step's time predicted"
    if one.measured is not None:
        words += f", {one.measured * 100:.0f} % in a clone"
    money = told.money_per_day(one.expected)
    return words if money is None else f"{words}; {money:.2f} {told.currency} a day"
