"""``make e2e``: Kubernetes' own tests of the API machinery, against the embedded server.

Beside it run kube-controller-manager, kube-scheduler and kwok, which plays nodes: no image is
pulled and no container runs. The table in docs/conformance.md is renewed. Takes 15 minutes or more.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.support import kube_binaries, kube_programs
from tests.support.apiserver import ApiServer
from tests.support.kwok_nodes import add_kwok_nodes
from tools.e2e.build import PROGRAM
from tools.e2e.causes import NOT_AIMED, cause_of

PAGE: Final = Path(__file__).parents[2] / "docs" / "conformance.md"
BEGIN: Final = "<!-- written by `make e2e` -->"
END: Final = "<!-- end of e2e -->"
GROUPS: Final = {
    "discovery": r"AggregatedDiscovery|\bDiscovery\b|server version",
    "CRDs": r"CustomResourceDefinition (resources|Watch)",
    "CRDs in OpenAPI": r"CustomResourcePublishOpenAPI|OpenAPIV3",
    "CRDs, rules and fields": (
        r"CustomResourceFieldSelectors|CRDValidationRatcheting|CustomResourceValidationRules"
    ),
    "strict fields": "FieldValidation",
    "quotas": "ResourceQuota",
    "garbage collection": "Garbage collector",
    "server-side apply": "ServerSideApply",
    "watches": r"Watchers|API Streaming",
    "tables": "Servers with support for Table transformation",
    "chunking": "Servers with support for API chunking",
    "namespaces": r"Namespaces|OrderedNamespaceDeletion",
    "clients and time-outs": r"client-go should negotiate|Server request timeout|Generated client",
}
"""What is run, by patterns of the tests' names."""
SKIP: Final = r"\[Flaky\]|\[Slow\]|\[Disruptive\]|\[Feature:.+\]|" + "|".join(NOT_AIMED)
AT_ONCE: Final = 3
LIMIT: Final = 1800.0


@dataclass(frozen=True)
class Outcome:
    """How one test ended."""

    group: str
    name: str
    state: str
    """As ginkgo says: passed, failed, timedout, panicked, skipped (by the test itself)."""
    message: str

    @property
    def passed(self) -> bool:
        """Tell whether it passed."""
        return self.state == "passed"


def main() -> int:
    """Run the groups and return 1 where a test failed for no known cause."""
    parser = argparse.ArgumentParser(description="Kubernetes' tests of the API machinery.")
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=", ".join(GROUPS))
    chosen = parser.parse_args().groups or list(GROUPS)
    if unknown := [one for one in chosen if one not in GROUPS]:
        parser.error(f"unknown: {', '.join(unknown)}; there are: {', '.join(GROUPS)}")
    if status := PROGRAM.build():
        return status
    with (
        tempfile.TemporaryDirectory() as directory,
        _cluster(Path(directory)) as server,
        ThreadPoolExecutor(AT_ONCE) as pool,
    ):
        found = [one for group in pool.map(lambda g: _run(server, g), chosen) for one in group]
    if len(chosen) == len(GROUPS):
        PAGE.write_text(written(PAGE.read_text(), found))
    unknown = [one.name for one in found if _failed(one) and cause_of(one.name) is None]
    print("\n".join(["", *table(found), *(f"no cause is known: {name}" for name in unknown)]))
    return 1 if unknown else 0


@contextlib.contextmanager
def _cluster(directory: Path) -> Iterator[ApiServer]:
    """Run the embedded server with Kubernetes' controllers and scheduler and kwok's nodes."""
    server = ApiServer(directory / "cluster").start()
    parts = (kube_programs.controller_manager, kube_programs.scheduler, kube_programs.kwok)
    programs = [part(server).start() for part in parts]
    try:
        add_kwok_nodes(server, 3)
        yield server
    finally:
        for program in programs:
            program.kill()
        server.kill()


def _run(server: ApiServer, group: str) -> list[Outcome]:
    """Run the tests of one group and return how each ended."""
    report = server.data / f"{re.sub(r'[^a-z]+', '-', group.lower())}.json"
    command = [
        str(PROGRAM.path()),
        f"--kubeconfig={server.kubeconfig}",
        f"--kubectl-path={kube_binaries.need('kubectl')}",
        "--provider=skeleton",
        f"--e2e-output-dir={server.data}",
        f"--ginkgo.focus={GROUPS[group]}",
        f"--ginkgo.skip={SKIP}",
        f"--ginkgo.timeout={LIMIT:.0f}s",
        f"--ginkgo.json-report={report}",
        "--ginkgo.silence-skips",
    ]
    log = report.with_suffix(".log")
    with log.open("w") as out:
        subprocess.run(command, stdout=out, stderr=out, check=False, timeout=LIMIT + 120)
    if not report.exists():
        raise SystemExit(f"{group}: no report; it said: {log.read_text()[-3000:]}")
    found = list(outcomes(group, json.loads(report.read_text())))
    bad = [one for one in found if _failed(one)]
    print(f"{group}: {sum(one.passed for one in found)} of {len(found)} passed", flush=True)
    for one in bad:
        print(f"  {one.state}: {one.name}\n    {one.message[:300]!r}", flush=True)
    return found


def _failed(outcome: Outcome) -> bool:
    return outcome.state not in ("passed", "skipped")


def outcomes(group: str, report: Sequence[dict[str, Any]]) -> Iterator[Outcome]:
    """Yield how the tests of ginkgo's *report* ended; those that were not chosen are left out."""
    for suite in report:
        for spec in suite.get("SpecReports") or ():
            if spec["LeafNodeType"] != "It" or spec["State"] == "pending":
                continue
            message = (spec.get("Failure") or {}).get("Message", "")
            if spec["State"] == "skipped" and not message:
                continue
            name = " ".join([*(spec["ContainerHierarchyTexts"] or ()), spec["LeafNodeText"]])
            yield Outcome(group, name, spec["State"], message)


def table(found: Sequence[Outcome]) -> list[str]:
    """Return the lines of the documentation that are written from the outcomes."""
    ran = [one for one in found if one.state != "skipped"]
    passed = sum(one.passed for one in ran)
    lines = [
        f"{passed} of {len(ran)} tests pass.",
        "",
        "| tests of | pass | fail | leave themselves out |",
        "| --- | --- | --- | --- |",
    ]
    for group in dict.fromkeys(one.group for one in found):
        own = [one for one in found if one.group == group]
        counts = (
            sum(one.passed for one in own),
            sum(map(_failed, own)),
            sum(one.state == "skipped" for one in own),
        )
        lines.append(f"| {group} | {' | '.join(map(str, counts))} |")
    failed = [one for one in ran if not one.passed]
    if failed:
        lines += ["", "| fails | cause |", "| --- | --- |"]
        lines += [f"| {_cell(one.name)} | {cause_of(one.name) or 'not known'} |" for one in failed]
    return lines


def _cell(text: str) -> str:
    return text.replace("|", "\\|").removeprefix("[sig-api-machinery] ")


def written(page: str, found: Sequence[Outcome]) -> str:
    """Return the documentation *page* with its table renewed."""
    head, _, rest = page.partition(BEGIN)
    body = "\n".join(table(found))
    return f"{head}{BEGIN}\n\n{body}\n\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    sys.exit(main())
