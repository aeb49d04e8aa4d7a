"""Warm-ups by clock and event, processes, and datasets that stand for others: decided purely."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import structs

from lockstep.api.dataset_cache import (
    DatasetCache,
    DatasetCacheSpec,
    DatasetCacheStatus,
    TargetStatus,
)
from lockstep.api.meta import ObjectMeta
from lockstep.api.wire import convert
from lockstep.compat.fluid.objects import (
    Condition,
    DataLoad,
    DataLoadSpec,
    DataMigrate,
    DataMigrateSpec,
    DataProcess,
    DataProcessSpec,
    Dataset,
    DatasetName,
    DatasetSpec,
    DatasetStatus,
    End,
    MigratedDataset,
    Mount,
    OperationStatus,
    ProcessedDataset,
    RunAfter,
    Runtime,
    Storage,
)
from lockstep.compat.fluid.operations import process as carried_out
from lockstep.data.core.dataset_state import Carried, Seen
from lockstep.data.core.decide import decide
from lockstep.data.core.sharing import SHARED_WITH, may_read
from lockstep.data.core.status import with_ignored
from lockstep.runtime.actions import Create

NOW = "2026-01-01T10:00:00Z"
ALL = TargetStatus(files=2, bytes=10, cached_files=2, cached_bytes=10)


def meta(name: str, **more: Any) -> ObjectMeta:
    since = "2026-01-01T09:00:30Z"
    return ObjectMeta(name=name, namespace="a", uid=name, creation_timestamp=since, **more)


def dataset(mount: str = "s3://bucket", phase: str = "", **more: Any) -> Dataset:
    spec = DatasetSpec(mounts=[Mount(mount_point=mount)])
    return Dataset(meta("d", **more), spec, DatasetStatus(phase=phase, file_num="2"))


def cache(version: str = "v1", reload: str = "", listed: str = "v1") -> DatasetCache:
    spec = DatasetCacheSpec(
        node="n", dataset="d", version=version, reload=reload, targets=["/"], token=None
    )
    status = DatasetCacheStatus(
        phase="Ready",
        listed=listed,
        version=version,
        reload=reload,
        files=2,
        cached_files=2,
        targets={"/": ALL},
    )
    return DatasetCache(metadata=meta("d.n"), spec=spec, status=status)


def load(policy: str, status: OperationStatus | None = None, **spec: Any) -> DataLoad:
    whole = DataLoadSpec(dataset=DatasetName("d"), policy=policy, **spec)
    return DataLoad(meta("l"), whole, status or OperationStatus())


def seen(*loads: DataLoad, caches: tuple[DatasetCache, ...] = (), **more: Any) -> Seen:
    runtime = Runtime(meta("d"), {"replicas": 1}, kind="AlluxioRuntime")
    return Seen(dataset(), [runtime], caches or [cache()], loads, nodes=["n"], **more)


def status_of(decision: Any) -> OperationStatus:
    found: OperationStatus = decision.loads["l"]
    return found


def test_a_warm_up_by_the_clock_waits_for_its_minute() -> None:
    decision = decide(seen(load("Cron", schedule="5 10 * * *")), NOW)
    assert status_of(decision).phase == "Pending"
    assert decision.again == 300.0


def test_a_scheduled_warm_up_runs_and_falls_due_again() -> None:
    hourly = "0 * * * *"
    begun = status_of(decide(seen(load("Cron", schedule=hourly)), NOW))
    assert (begun.phase, begun.last_schedule_time) == ("Executing", NOW)
    later = "2026-01-01T10:00:05Z"
    done = decide(seen(load("Cron", begun, schedule=hourly)), later)
    assert status_of(done).phase == "Complete"
    assert status_of(done).last_successful_time == later
    idle = decide(seen(load("Cron", status_of(done), schedule=hourly)), later)
    assert status_of(idle).phase == "Complete"
    assert idle.again == 3595.0
    again = decide(seen(load("Cron", status_of(done), schedule=hourly)), "2026-01-01T11:00:01Z")
    assert status_of(again).phase == "Executing"


def test_a_schedule_that_is_none_is_refused() -> None:
    decision = decide(seen(load("Cron", schedule="sometimes")), NOW)
    assert status_of(decision).phase == "Failed"
    assert "spec.schedule" in status_of(decision).conditions[0].message


def test_a_warm_up_on_event_runs_for_each_version() -> None:
    first = status_of(decide(seen(load("OnEvent")), NOW))
    assert (first.phase, first.infos["version"]) == ("Complete", "v1")
    assert "l" not in decide(seen(load("OnEvent", first)), NOW).loads
    later = status_of(decide(seen(load("OnEvent", first), caches=(cache("v2", listed="v2"),)), NOW))
    assert later.infos["version"] == "v2"


def test_an_operation_runs_after_another() -> None:
    after = load("Once", run_after=RunAfter("DataProcess", "p"))
    waiting = status_of(decide(seen(after), NOW))
    assert waiting.waiting_for == {"operationComplete": "DataProcess/p"}
    done = decide(seen(after, operations={"DataProcess/p": "Complete"}), NOW)
    assert status_of(done).phase == "Complete"


@pytest.mark.parametrize("text", ["fast", "0", "-1"])
def test_a_rate_that_is_none_is_refused(text: str) -> None:
    decision = decide(seen(load("Once", options={"rateLimit": text})), NOW)
    assert "rateLimit" in status_of(decision).conditions[0].message


def process(**status: Any) -> DataProcess:
    script = {"script": {"image": "python", "command": ["python"], "source": "print(1)"}}
    where = ProcessedDataset("d", mount_path="/in")
    return DataProcess(meta("p"), DataProcessSpec(where, script), OperationStatus(**status))


def test_a_process_is_a_pod_that_mounts_the_dataset() -> None:
    decision = decide(seen(processes=[process()]), NOW)
    [pod] = [one.body for one in decision.actions if isinstance(one, Create) and "p-" in str(one)]
    [container] = pod["spec"]["containers"]
    assert container["command"] == ["python", "-c", "print(1)"]
    assert container["volumeMounts"][0]["mountPath"] == "/in"
    claim = pod["spec"]["volumes"][0]["persistentVolumeClaim"]
    assert claim == {"claimName": "d"}
    assert decision.processes["DataProcess/p"].phase == "Executing"


@pytest.mark.parametrize(("pod", "phase"), [("Succeeded", "Complete"), ("Failed", "Failed")])
def test_a_process_ends_as_its_pod_does(pod: str, phase: str) -> None:
    running = process(phase="Executing", started_at=NOW)
    decision = decide(
        seen(processes=[running], pods={"p-process": Carried("p-process", "u", pod)}), NOW
    )
    assert decision.processes["DataProcess/p"].phase == phase


def test_a_migration_by_the_clock_runs_a_pod_each_time() -> None:
    hourly = DataMigrate(
        meta("m"),
        DataMigrateSpec(
            source=End(external_storage=Storage("s3://from/here")),
            to=End(dataset=MigratedDataset("d")),
            policy="Cron",
            schedule="0 * * * *",
        ),
    )

    def step(at: str, status: OperationStatus, **pods: str) -> tuple[list[str], OperationStatus]:
        one = carried_out(structs.replace(hourly, status=status), lambda *_: dataset())
        known = {name: Carried(name, f"uid-{name}", phase) for name, phase in pods.items()}
        decision = decide(seen(processes=[one], pods=known), at)
        made = [f"{type(a).__name__} {a.name}" for a in decision.actions if "m-mig" in a.name]
        return made, decision.processes["DataMigrate/m"]

    early, waiting = step("2026-01-01T09:59:00Z", OperationStatus())
    assert (early, waiting.phase) == ([], "Pending")
    made, begun = step(NOW, waiting)
    first = begun.infos["pod"]
    assert (made, begun.phase) == ([f"Create {first}"], "Executing")
    # A status that was not written makes no second pod.
    assert step("2026-01-01T10:00:01Z", waiting, **{first: "Running"})[1].infos["pod"] == first
    assert step(NOW, begun) == ([f"Create {first}"], begun)
    later = "2026-01-01T10:00:09Z"
    none, done = step(later, begun, **{first: "Succeeded"})
    assert (none, done.phase, done.last_successful_time) == ([], "Complete", later)
    assert step("2026-01-01T10:59:59Z", done, **{first: "Succeeded"}) == ([], done)
    again, second = step("2026-01-01T11:00:00Z", done, **{first: "Succeeded"})
    assert again == [f"Delete {first}", f"Create {second.infos['pod']}"]
    assert second.last_successful_time == later


@pytest.mark.parametrize(
    ("listed", "namespace", "open_to_all", "may"),
    [
        (None, "b", True, True),
        (None, "b", False, False),
        (None, "a", False, True),
        ("b, c", "b", False, True),
        ("c", "b", True, False),
        ("*", "b", False, True),
    ],
)
def test_an_owner_says_which_namespaces_read(
    listed: str | None, namespace: str, open_to_all: bool, may: bool
) -> None:
    owner = dataset(annotations={SHARED_WITH: listed} if listed else {})
    assert may_read(owner, namespace, open_to_all=open_to_all) is may


def test_a_dataset_that_stands_for_another_is_bound_to_it() -> None:
    owner = dataset(phase="Bound")
    found = decide(
        Seen(dataset("dataset://b/images/train"), owner=owner, open_to_all=True, nodes=["n"]), NOW
    )
    assert found.status is not None
    assert (found.status.phase, found.status.dataset_ref) == ("Bound", ["b/images"])
    assert found.status.file_num == "2"
    volumes = [one.body for one in found.actions if isinstance(one, Create)]
    shown = volumes[0]["spec"]["csi"]["volumeAttributes"]
    assert shown == {"namespace": "b", "dataset": "images", "path": "train"}


@pytest.mark.parametrize(
    ("mount", "owner", "reason"),
    [
        ("dataset://b/images", None, "NotShared"),
        ("dataset://b/images", dataset(phase="NotBound"), "Waiting"),
        ("dataset://b", None, "NotHonoured"),
        ("dataset://b/images/../x", None, "NotHonoured"),
    ],
)
def test_a_reference_that_cannot_be_bound_says_why(
    mount: str, owner: Dataset | None, reason: str
) -> None:
    found = decide(Seen(dataset(mount), owner=owner, open_to_all=True), NOW)
    assert found.status is not None
    assert found.status.phase != "Bound"
    assert found.status.conditions[0].reason == reason


def test_a_synced_dataset_asks_for_a_listing_by_itself() -> None:
    spec = {"management": {"metadataSyncPolicy": {"autoSync": True}}}
    runtime = Runtime(meta("d"), spec, kind="JuiceFSRuntime")
    found = decide(Seen(dataset(), [runtime], [cache()], nodes=["n"]), NOW)
    assert found.again == 300.0
    assert any("sync-" in str(one) for one in found.actions)


def test_an_operation_names_the_fields_that_have_no_effect() -> None:
    spec = {"dataset": {"name": "d"}, "ttlSecondsAfterFinished": 60, "podMetadata": {"labels": {}}}
    meta = {"name": "l", "namespace": "n", "uid": "u"}
    one = convert({"metadata": meta, "spec": {**spec, "schedulerName": "mine"}}, DataLoad)
    done = Condition(type="Complete", status="True")
    first = with_ignored(one, OperationStatus(phase="Complete", conditions=[done]), NOW)
    assert [told.type for told in first.conditions] == ["Complete", "OptionsIgnored"]
    named = "podMetadata, schedulerName, ttlSecondsAfterFinished"
    assert first.conditions[1].message.endswith(named)
    again = msgspec.structs.replace(one, status=first)
    assert with_ignored(again, first, "2030-01-01T00:00:00Z") == first
