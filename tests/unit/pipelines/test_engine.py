"""Runs told what happened: what they start, and how they end."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.api.core import Pod
from lockstep.api.pipeline import PipelineRunSpec
from lockstep.api.wire import convert
from lockstep.pipelines.core.engine import Engine
from lockstep.pipelines.core.record import records
from lockstep.pipelines.core.results import of_pod
from lockstep.pipelines.core.told import Ensure, Explain, Kept, Remove, Run, Seen

Json = dict[str, Any]
RUN = Run("squares", "default", "3f2a")


def spec(*tasks: Json, **more: Any) -> PipelineRunSpec:
    templates = {
        "main": {"defaults": {"n": 3, "items": [1, 2]}, "graph": {"tasks": list(tasks)}},
        "step": {"defaults": {"x": 0}, "pod": {"template": {}}},
        "pause": {"suspend": {}},
        **more.pop("templates", {}),
    }
    return convert({"templates": templates, **more}, PipelineRunSpec)


def task(name: str, *after: str, template: str = "step", **more: Any) -> Json:
    return {"name": name, "template": template, "after": list(after), **more}


class Play:
    """An engine whose steps end as they are told to."""

    def __init__(self, wanted: PipelineRunSpec, **more: Any) -> None:
        self.engine = Engine(RUN, wanted, 0.0, **more)
        self.now = 0.0
        self.started: list[str] = []
        self.removed: list[str] = []
        self.asked: list[str] = []
        self.look()

    def look(self) -> None:
        for action in self.engine.take():
            place = action.step.removeprefix("main.")
            lists = {Ensure: self.started, Remove: self.removed, Explain: self.asked}
            lists[type(action)].append(place)

    def end(self, name: str, phase: Any = "Succeeded", **more: Any) -> Play:
        self.now += 1
        node = self.engine.nodes[f"main.{name}"]
        self.engine.observe(node.id, node.attempt, Seen(phase, **more), self.now)
        self.look()
        return self

    def wait(self, seconds: float) -> Play:
        self.now += seconds
        self.engine.tick(self.now)
        self.look()
        return self

    def phases(self) -> dict[str, str]:
        nodes = self.engine.nodes.items()
        return {name.removeprefix("main."): one.phase for name, one in nodes if name != "main"}

    @property
    def phase(self) -> str:
        return self.engine.root.phase


def test_a_task_starts_once_all_before_it_succeeded() -> None:
    play = Play(spec(task("a"), task("b"), task("c", "a", "b")))
    assert play.started == ["a", "b"]
    assert play.end("a").started == ["a", "b"]
    assert play.end("b").started == ["a", "b", "c"]
    assert play.end("c").phase == "Succeeded"


def test_a_failure_ends_its_dependants_and_starts_nothing_more() -> None:
    play = Play(spec(task("a"), task("b", "a"), task("c"), task("d", "c")))
    play.end("a", "Failed", message="exit 1").end("c")
    assert play.phases() == {"a": "Failed", "b": "Omitted", "c": "Succeeded", "d": "Omitted"}
    assert (play.phase, play.engine.root.message) == ("Failed", "a: exit 1")


def test_a_branch_goes_on_without_fail_fast() -> None:
    graph = {"tasks": [task("a"), task("c"), task("d", "c")], "fail_fast": False, "failFast": False}
    play = Play(spec(templates={"main": {"graph": graph}}))
    assert play.end("a", "Failed").end("c").started == ["a", "c", "d"]


def test_values_go_from_step_to_step() -> None:
    main = {
        "defaults": {"n": 3},
        "outputs": {"sum": "${{ tasks['b'].outputs.y + inputs.n }}"},
        "graph": {"tasks": [task("a"), task("b", arguments={"x": "${{ tasks.a.outputs.y }}"})]},
    }
    play = Play(spec(templates={"main": main}))
    play.end("a", outputs={"y": [1, {"z": None}]})
    assert play.engine.nodes["main.b"].inputs == {"x": [1, {"z": None}]}
    assert play.end("b", outputs={"y": 4}).engine.root.outputs == {"sum": 7}


@pytest.mark.parametrize(
    ("when", "phase"), [("inputs.n > 2", "Pending"), ("inputs.n > 3", "Skipped")]
)
def test_a_condition_decides_whether_a_task_runs(when: str, phase: str) -> None:
    play = Play(spec(task("a", when=when), task("b", "a")))
    assert play.phases()["a"] == phase
    # What was skipped stands in nobody's way.
    assert play.started == (["a"] if phase == "Pending" else ["b"])


@pytest.mark.parametrize(("end", "state"), [("Succeeded", "Omitted"), ("Failed", "Pending")])
def test_a_task_may_need_the_failure_of_another(end: str, state: str) -> None:
    play = Play(spec(task("a"), task("mend", needs="tasks.a.state == 'Failed'")))
    assert play.end("a", end).phases()["mend"] == state
    if end == "Failed":
        play.end("mend")
    assert play.phase == "Succeeded"


def test_a_loop_runs_each_item_so_many_at_once() -> None:
    loop = {"items": "${{ inputs.items }}", "parallelism": 1}
    play = Play(
        spec(task("l", loop=loop, arguments={"x": "${{ item }}"}), task("b", "l", arguments={}))
    )
    assert play.started == ["l.0"]
    play.end("l.0", outputs={"y": 10})
    assert play.started == ["l.0", "l.1"]
    play.end("l.1", outputs={"y": 20})
    assert play.engine.nodes["main.l"].outputs == {"y": [10, 20]}
    assert [play.engine.nodes[f"main.l.{i}"].inputs for i in (0, 1)] == [{"x": 1}, {"x": 2}]
    assert play.started[-1] == "b"


@pytest.mark.parametrize(
    ("items", "words"), [("{}", "is not a list"), ("[1", "no JSON"), ("[]", "")]
)
def test_a_loop_needs_a_list(items: str, words: str) -> None:
    play = Play(spec(task("l", loop={"items": items})))
    assert play.phase == ("Failed" if words else "Succeeded")
    assert words in play.engine.root.message


def test_an_exit_task_runs_however_the_rest_ends() -> None:
    play = Play(spec(task("a"), task("b", "a"), task("exit", "b", exit=True)))
    play.end("a", "Failed")
    assert play.started == ["a", "exit"]
    assert play.end("exit").phase == "Failed"


def test_retries_wait_longer_each_time() -> None:
    retry = {"limit": 2, "backoff": "10s", "factor": 3}
    play = Play(spec(task("a", retry=retry)))
    play.end("a", "Failed")
    assert play.wait(9).started == ["a"]
    assert play.wait(1).started == ["a", "a"]
    play.end("a", "Failed")
    assert play.wait(29).started == ["a", "a"]
    assert play.wait(1).started == ["a", "a", "a"]
    assert play.end("a", "Failed", message="again").phase == "Failed"


def test_a_retry_may_ask_for_its_reason() -> None:
    retry = {"limit": 5, "when": "last.exitCode == 7"}
    play = Play(spec(task("a", retry=retry)))
    assert play.end("a", "Failed", exit_code=7).phase == "Running"
    assert play.end("a", "Failed", exit_code=1).phase == "Failed"


def test_a_lost_pod_is_no_try_of_the_step() -> None:
    play = Play(spec(task("a")))
    assert play.end("a", "Lost", message="NodeLost").started == ["a", "a"]
    assert play.end("a").phase == "Succeeded"


def test_a_kept_result_starts_nothing() -> None:
    wanted = spec(task("a", keep={}), task("b", "a", keep={}))
    known = {"main.a": Kept({"y": 1}, "first/main.a")}
    play = Play(wanted, key_of=lambda _, node: node.id, kept=lambda key, _: known.get(key))
    assert play.started == ["b"]
    assert play.engine.nodes["main.a"].kept_from == "first/main.a"


def test_a_stop_ends_steps_and_runs_exit_tasks() -> None:
    play = Play(spec(task("a"), task("b", "a"), task("exit", "b", exit=True)))
    play.engine.stop("enough", 1.0)
    play.look()
    assert (play.removed, play.started) == (["a"], ["a", "exit"])
    assert play.end("exit").phase == "Stopped"


def test_a_suspended_step_waits_to_be_resumed() -> None:
    play = Play(spec(task("a", template="pause"), task("b", "a")))
    assert play.started == []
    play.engine.resume(frozenset({"main.a"}), 1.0)
    play.look()
    assert play.started == ["b"]


def test_a_suspended_run_starts_no_step() -> None:
    play = Play(spec(task("a"), desired="Suspended"))
    assert play.started == []
    play.engine.suspend(False, 1.0)
    play.look()
    assert play.started == ["a"]


@pytest.mark.parametrize(
    ("field", "before", "message"),
    [("maxWait", "Pending", "waited longer"), ("timeout", "Running", "ran longer")],
)
def test_a_step_waits_and_runs_so_long_at_most(field: str, before: str, message: str) -> None:
    play = Play(spec(task("a", **{field: "5s"})))
    play.end("a", before).wait(10)
    assert (play.phase, play.removed) == ("Failed", ["a"])
    assert message in play.engine.root.message


def test_a_pod_that_cannot_start_fails_its_step_with_reason() -> None:
    why = "main: CreateContainerError: cannot mount /tmp"
    play = Play(spec(task("a", retry={"limit": 1})))
    play.end("a", "Pending", message=why, stuck=True).wait(299)
    assert play.removed == []
    play.wait(1)
    assert (play.removed, play.started) == (["a"], ["a", "a"])
    play.end("a", "Pending", message=why, stuck=True).wait(300)
    assert play.phase == "Failed"
    assert f"did not start within 5 minutes: {why}" in play.engine.root.message


def test_a_pod_that_starts_late_goes_on() -> None:
    play = Play(spec(task("a")))
    play.end("a", "Pending", message="no such secret", stuck=True).wait(200)
    play.end("a", "Pending").wait(50)
    play.end("a", "Pending", message="no such secret", stuck=True).wait(200)
    play.end("a", "Running").wait(1000)
    assert (play.phase, play.removed) == ("Running", [])


@pytest.mark.parametrize(
    ("reason", "message", "stuck"),
    [
        ("ContainerCreating", "", False),
        ("ContainerCreating", "dataset 'd' is being fetched to this node", False),
        ("ContainerCreating", 'secret "s" not found', True),
        ("ImagePullBackOff", "Back-off pulling image", True),
    ],
)
def test_what_keeps_a_pod_from_starting_is_told(reason: str, message: str, stuck: bool) -> None:
    waiting = {"name": "main", "state": {"waiting": {"reason": reason, "message": message}}}
    status = {"phase": "Pending", "containerStatuses": [waiting]}
    seen = of_pod(convert({"metadata": {"name": "p"}, "status": status}, Pod), has_outputs=False)
    assert (seen.phase, seen.stuck) == ("Pending", stuck)
    assert message in seen.message


@pytest.mark.parametrize("set_up", ["True", "False"])
def test_volumes_that_a_kubelet_cannot_mount_are_noticed(set_up: str) -> None:
    condition = {"type": "PodReadyToStartContainers", "status": set_up}
    waiting = {"name": "main", "state": {"waiting": {"reason": "ContainerCreating"}}}
    status = {"phase": "Pending", "containerStatuses": [waiting], "conditions": [condition]}
    seen = of_pod(convert({"metadata": {"name": "p"}, "status": status}, Pod), has_outputs=False)
    # Behind a volume that is there, an image may take its time.
    assert seen.stuck == (set_up == "False")


def test_a_pod_that_says_nothing_is_asked_about() -> None:
    why = 'FailedMount: MountVolume.SetUp failed for volume "v": secret "s" not found'
    play = Play(spec(task("a")))
    play.end("a", "Pending", stuck=True).wait(19)
    assert play.asked == []
    play.wait(1)
    assert play.asked == ["a"]
    play.engine.explain("main.a", 0, why, play.now)
    play.end("a", "Pending", stuck=True).wait(280)
    assert play.phase == "Failed"
    assert f"did not start within 5 minutes: {why}" in play.engine.root.message


def test_data_on_its_way_is_no_missing_volume() -> None:
    play = Play(spec(task("a")))
    play.end("a", "Pending", stuck=True)
    for _ in range(40):
        play.wait(20)
        play.engine.explain("main.a", 0, "FailedMount: 'd' is being fetched to this node", play.now)
    assert (play.phase, play.removed) == ("Running", [])
    play.wait(300)
    assert play.phase == "Failed"


def test_steps_side_by_side_are_bounded() -> None:
    play = Play(spec(task("a"), task("b"), task("c"), parallelism=2))
    assert play.started == ["a", "b"]
    assert play.end("b").started == ["a", "b", "c"]


def test_a_graph_calls_itself_no_deeper_than_is_allowed() -> None:
    again = {"graph": {"tasks": [task("deeper", template="again")]}}
    play = Play(spec(task("a", template="again"), templates={"again": again}))
    assert play.phase == "Failed"
    assert "graphs within each other" in play.engine.root.message


def test_an_expression_without_a_value_fails_its_step() -> None:
    play = Play(spec(task("a"), task("b", arguments={"x": "${{ tasks.a.outputs.nope }}"})))
    assert play.end("a").phase == "Failed"
    assert "b: 'tasks.a.outputs.nope': there is no 'nope'" in play.engine.root.message


def test_a_retried_run_runs_only_what_has_not_succeeded() -> None:
    from lockstep.api.meta import ObjectMeta
    from lockstep.api.pipeline import PipelineRun, PipelineRunStatus

    wanted = spec(task("a"), task("b", "a"), task("c", "b"))
    play = Play(wanted).end("a").end("b", "Failed")
    steps = {name: node.status() for name, node in play.engine.nodes.items()}
    again = spec(task("a"), task("b", "a"), task("c", "b"), retries=1)
    run = PipelineRun(
        metadata=ObjectMeta(name="r"), spec=again, status=PipelineRunStatus(steps=steps)
    )
    play = Play(again, records=records(run))
    assert play.started == ["b"]
    # Its pod must have another name than the one that failed.
    assert play.engine.nodes["main.b"].attempt == 1
    assert play.end("b").end("c").phase == "Succeeded"
