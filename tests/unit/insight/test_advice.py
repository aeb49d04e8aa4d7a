"""What probes measured leads to the cause that it came from, and healthy jobs are left alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lockstep.api.probes import Loader, Profile, Sheet
from lockstep.insight.advice.causes import CAUSES
from lockstep.insight.advice.evidence import Gpu, gather
from lockstep.insight.advice.experiments import clone, weighed, worth_trying
from lockstep.insight.advice.judge import Advice, Verdict, judge

WALL = 60.0


def sheet(rank: int = 0, steps: int = 600, **more: Any) -> Sheet:
    """A rank over a minute; *more* are sums, and ``loader``, ``profile``, ``cores``, ``lines``."""
    own = {
        k: more.pop(k) for k in ("loader", "profile", "cores", "throttled", "lines") if k in more
    }
    sums = {"steps": float(steps)}
    sums |= {name.replace("_", ".", 1): value for name, value in more.items()}
    looks = {k: v for k, v in sums.items() if k.startswith("at.")}
    sums = {k: v for k, v in sums.items() if k not in looks}
    phases = {k.replace("at.", "at:"): v for k, v in looks.items()} or {"at:compute": 100.0}
    own = {"cores": 4.0, **own}
    return Sheet(rank=rank, wall=WALL, step=steps, steps=[0.1] * 5, sums=sums | phases, **own)


def fetched(part: float, *, user: float = 0, system: float = 0, **more: float) -> dict[str, float]:
    """A minute of which *part* is waited for a loader without workers."""
    return {
        "loader_wait": WALL * part,
        "fetch_wall": WALL * part,
        "fetch_user": WALL * part * user,
        "fetch_system": WALL * part * system,
        "fetch_batches": 600,
        "fetch_samples": 9600,
        **more,
    }


def saturated(part: float, workers: int = 4, **more: float) -> dict[str, Any]:
    """The same with *workers* that load all the time."""
    found: dict[str, Any] = fetched(part, **more)
    scale = workers / part
    for name in ("fetch_wall", "fetch_user", "fetch_system"):
        found[name] *= scale
    return {**found, "loader": Loader(workers=workers, prefetch=2, persistent=True, batch=16)}


ALONE = Loader(batch=16)
BUSY = Profile(work=0.09, operations=500, short=50)
KIB = 1024.0

CASES: dict[str, list[dict[str, Any]]] = {
    "few-workers": [
        {**fetched(0.5, user=0.05), "loader": ALONE},
        {**fetched(0.9, user=0.02), "loader": ALONE},
        {**fetched(0.4, user=0.9), "loader": ALONE},
    ],
    "remote-storage": [
        {**saturated(part, fetch_connects=9600, fetch_bytes=9600 * 64 * KIB), "cores": 8.0}
        for part in (0.3, 0.6, 0.9)
    ],
    "slow-storage": [
        saturated(part, fetch_opens=9600, fetch_bytes=9600 * 2048 * KIB) for part in (0.3, 0.6, 0.9)
    ],
    "small-files": [
        saturated(part, system=0.5, user=0.2, fetch_opens=9600 * 40.0, fetch_bytes=9600 * 80 * KIB)
        for part in (0.3, 0.6, 0.9)
    ],
    "cpu-in-loading": [saturated(part, user=0.95) for part in (0.3, 0.6, 0.9)],
    "cold-workers": [
        {
            "loader_starting": WALL * part / 2,
            "loader_first": WALL * part / 2,
            "loader_wait": WALL * part / 2,
            "loader": Loader(workers=4, batch=16),
        }
        for part in (0.15, 0.4, 0.7)
    ],
    "cpu-quota": [{"throttled": part, "profile": BUSY} for part in (0.4, 0.6, 0.9)],
    "checkpoints": [{"save_seconds": WALL * part} for part in (0.1, 0.3, 0.6)],
    "logging": [{"at_logging": part, "at_compute": 100 - part} for part in (12, 30, 60)],
    "metrics": [{"at_metrics": part, "at_compute": 100 - part} for part in (12, 30, 60)],
    "small-batch": [
        {
            "loader": ALONE,
            "profile": Profile(work=work, operations=count, short=count * 0.95),
        }
        for work, count in ((0.02, 4000), (0.01, 8000), (0.04, 12000))
    ],
}


def causes(*sheets: Sheet, gpu: Gpu | None = None) -> list[str]:
    return [one.cause for one in judge(gather(sheets, gpu)).verdicts]


@pytest.mark.parametrize(
    ("cause", "given"), [(cause, one) for cause, ones in CASES.items() for one in ones]
)
def test_the_seeded_cause_is_named_first(cause: str, given: dict[str, Any]) -> None:
    assert causes(sheet(**given))[:1] == [cause]


def test_what_every_rank_waits_for_is_communication() -> None:
    ranks = [
        sheet(rank, profile=Profile(communication=0.05, exposed=exposed, work=0.05, operations=9))
        for rank, exposed in ((0, 0.040), (1, 0.042))
    ]
    assert causes(*ranks) == ["communication"]


def test_a_rank_that_others_wait_for_is_named() -> None:
    ranks = [
        sheet(rank, profile=Profile(exposed=0.002 if rank == 2 else 0.05, operations=9))
        for rank in range(4)
    ]
    verdict = judge(gather(ranks)).verdicts[0]
    assert (verdict.cause, "rank 2" in verdict.evidence[0]) == ("straggler", True)


HEALTHY = [
    {"profile": BUSY},
    {**saturated(0.02), "profile": BUSY},
    {"at_logging": 3, "at_compute": 97, "save_seconds": 2.0, "profile": BUSY},
    {"loader": Loader(workers=4, batch=64), "loader_wait": 1.0, "loader_starting": 1.5},
]


@pytest.mark.parametrize("given", HEALTHY)
def test_a_healthy_job_is_left_alone(given: dict[str, Any]) -> None:
    assert causes(sheet(**given)) == []


def test_several_causes_come_in_order_of_gain() -> None:
    mixed = {**fetched(0.4, user=0.02), "loader": ALONE, "save_seconds": WALL * 0.2}
    assert causes(sheet(**mixed)) == ["few-workers", "checkpoints"]


def test_few_steps_leave_it_suspected() -> None:
    given = {**fetched(0.5, user=0.02), "loader": ALONE}
    many, few = (judge(gather([sheet(steps=n, **given)])).verdicts[0] for n in (600, 6))
    assert (many.suspected, few.suspected) == (False, True)


def test_without_steps_nothing_is_claimed_but_an_idle_hold() -> None:
    assert judge(gather([])) == Advice(
        "unknown",
        0.0,
        (),
        ("no steps were seen: the job has not begun, or its steps use no torch optimizer",),
    )
    assert causes(gpu=Gpu(busy=0.0, memory=0.4)) == ["idle-hold"]


DEVICE = [
    ("no-tensor-cores", Profile(kernels=80, kernel_micros=90, kernel_seconds=0.09)),
    ("small-kernels", Profile(kernels=900, kernel_micros=4, kernel_seconds=0.02)),
    ("unpinned-memory", Profile(kernels=50, kernel_micros=50, pageable_seconds=0.04)),
    (
        "synchronising",
        Profile(kernels=50, kernel_micros=50, kernel_seconds=0.04, tensor_seconds=0.03, syncs=9),
    ),
]


@pytest.mark.parametrize(("cause", "profile"), DEVICE)
def test_a_window_on_the_gpu_names_the_cause(cause: str, profile: Profile) -> None:
    assert causes(sheet(profile=profile))[:1] == [cause]


def test_every_cause_has_words_and_a_remedy() -> None:
    assert all(one.words and one.remedy and one.decides for one in CAUSES.values())


JOB: dict[str, Any] = {
    "metadata": {"name": "llm", "namespace": "team", "uid": "u"},
    "spec": {
        "framework": "pytorch",
        "queue": "research",
        "checkpoint": {"directory": "s3://b"},
        "roles": [
            {
                "name": "worker",
                "replicas": 4,
                "min": 2,
                "template": {
                    "spec": {
                        "volumes": [{"name": "own", "emptyDir": {}}, {"name": "data"}],
                        "containers": [
                            {
                                "name": "main",
                                "command": ["torchrun", "t.py"],
                                "volumeMounts": [
                                    {"name": "own", "mountPath": "/own"},
                                    {"name": "data", "mountPath": "/data"},
                                ],
                            }
                        ],
                    }
                },
            }
        ],
    },
}


def test_a_clone_writes_nothing_that_others_see() -> None:
    made = clone(JOB, "workers", 8, 40)
    role = made["spec"]["roles"][0]
    main = role["template"]["spec"]["containers"][0]
    assert "checkpoint" not in made["spec"]
    assert "min" not in role
    assert [one["readOnly"] for one in main["volumeMounts"]] == [False, True]
    assert json.loads(main["env"][0]["value"]) == {"change": "workers", "value": 8, "steps": 40}
    assert made["metadata"]["ownerReferences"][0]["uid"] == "u"
    assert "volumeMounts" in JOB["spec"]["roles"][0]["template"]["spec"]["containers"][0]
    assert "env" not in JOB["spec"]["roles"][0]["template"]["spec"]["containers"][0]


def test_a_clone_of_one_rank_has_one_process() -> None:
    role = clone(JOB, "one_rank", 0, 40)["spec"]["roles"]
    assert [(one["replicas"], one["processesPerNode"]) for one in role] == [(1, 1)]


def verdict(cause: str, gain: float = 0.5) -> Verdict:
    return Verdict(cause, gain, 0.9, ())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("cause", "altered", "proved", "measured"),
    [
        ("few-workers", 0.05, True, 0.5),
        ("few-workers", 0.095, False, 0.05),
        ("small-batch", 0.11, True, 0.45),  # a step of twice the samples
    ],
)
def test_a_clone_proves_or_refutes(
    cause: str, altered: float, proved: bool, measured: float
) -> None:
    found = weighed(verdict(cause), 0.1, altered)
    assert (found.proved, found.measured) == (proved, pytest.approx(measured))
    assert found.suspected is not proved


def test_each_change_is_tried_once() -> None:
    several = [verdict(one) for one in ("slow-storage", "small-files", "throttling", "logging")]
    assert [one.cause for one in worth_trying(several, 4)] == ["slow-storage", "logging"]
