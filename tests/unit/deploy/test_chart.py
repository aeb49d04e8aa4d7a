"""The chart and the manifest: they say what the program says, and what clusters demand."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
import yaml
from tests.support.installed import account
from tools.deploy.generate import (
    CHART,
    IN_CHART,
    MANIFEST,
    SHARES_MANIFEST,
    admission_manifest,
    generated,
    manifest,
    render,
)
from tools.helm import build

from lockstep import __version__
from lockstep.api import creator_policy
from lockstep.api.names import GROUP, SYSTEM_NAMESPACE
from lockstep.api.permissions.parts import PERMISSIONS
from lockstep.api.permissions.rules import METRICS
from lockstep.api.presentation import PRESENTATIONS

Json = dict[str, Any]
Values = tuple[str, ...]

RULES_OF = ("ClusterRole", "Role")


@pytest.fixture(scope="module")
def helm() -> Callable[..., list[Json]]:
    """Render the chart with values; skipped where Helm was not built."""
    program = build.find()
    if program is None:
        pytest.skip("no helm: run `make helm`")
    return lambda *values: [o for o in yaml.safe_load_all(render(program, *values)) if o]


@pytest.fixture(scope="module")
def installed() -> list[Json]:
    return list(yaml.safe_load_all(MANIFEST.read_text()))


def of_kind(objects: Iterable[Json], kind: str) -> dict[str, Json]:
    return {o["metadata"]["name"]: o for o in objects if o["kind"] == kind}


def pods(objects: Iterable[Json]) -> Iterator[Json]:
    for one in of_kind(objects, "Deployment").values():
        yield one["spec"]["template"]["spec"]


@pytest.mark.parametrize("path", generated(), ids=lambda path: path.name)
def test_what_the_chart_holds_of_the_program_is_up_to_date(path):
    assert path.read_text() == generated()[path], "run `make manifests` and commit deploy/"


def test_the_manifest_is_the_chart_as_helm_renders_it(helm):
    program = build.find()
    assert program is not None
    assert MANIFEST.read_text() == manifest(program), "run `make manifests` and commit deploy/"
    told = "run `make manifests` and commit deploy/"
    assert SHARES_MANIFEST.read_text() == admission_manifest(program), told


def test_the_webhook_for_shares_is_where_its_configuration_says(helm):
    assert not of_kind(helm(), "MutatingWebhookConfiguration")
    objects = helm("admission.enabled=true")
    (webhook,) = of_kind(objects, "MutatingWebhookConfiguration")["lockstep-shares"]["webhooks"]
    assert webhook["failurePolicy"] == "Fail"
    where = webhook["clientConfig"]["service"]
    service = of_kind(objects, "Service")[where["name"]]
    assert where["namespace"] == service["metadata"]["namespace"] == SYSTEM_NAMESPACE
    (port,) = service["spec"]["ports"]
    pod = of_kind(objects, "Deployment")["lockstep-admission"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (served,) = container["ports"]
    assert (where["port"], port["targetPort"]) == (port["port"], served["name"])
    assert f"--port={served['containerPort']}" in container["args"]
    (opened,) = of_kind(objects, "NetworkPolicy")["lockstep-admission"]["spec"]["ingress"]
    assert opened["ports"] == [{"port": served["containerPort"], "protocol": "TCP"}]
    rules = of_kind(objects, "ClusterRole")["lockstep-admission"]["rules"]
    assert rules == list(PERMISSIONS["admission"].cluster)


def test_the_chart_has_the_version_of_the_program():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == __version__


@pytest.mark.parametrize("part", IN_CHART)
def test_a_part_has_the_rights_of_the_table(helm, part):
    """Also those of simulated nodes, whose rights tests make without Helm."""
    rendered = helm("simulatedNodes.enabled=true")
    more = METRICS if PERMISSIONS[part].serves else ()
    for wanted in account(part):
        kind, meta = wanted["kind"], wanted["metadata"]
        found = next(
            o
            for o in rendered
            if (o["kind"], o["metadata"]["name"], o["metadata"].get("namespace"))
            == (kind, meta["name"], meta.get("namespace"))
        )
        if kind == "ClusterRole":
            wanted["rules"] += more
        for field in ("rules", "subjects", "roleRef"):
            assert found.get(field) == wanted.get(field), f"{kind} {meta['name']}"


def test_each_definition_may_be_looked_at_by_those_who_need_its_kind():
    names = {f"{shown.resource.plural}.{GROUP}" for shown in PRESENTATIONS}
    for part in ("scheduler", "controllers"):
        found = [
            r
            for r in PERMISSIONS[part].cluster
            if "customresourcedefinitions" in r["resources"] and names & set(r["resourceNames"])
        ]
        assert [set(rule["resourceNames"]) for rule in found] == [names]


def test_nobody_may_do_everything(installed):
    for one in installed:
        if one["kind"] in RULES_OF:
            for rule in one["rules"]:
                assert "*" not in [*rule["verbs"], *rule.get("resources", [])]


def test_pods_may_do_nothing_on_their_node(installed):
    found = list(pods(installed))
    assert len(found) == 3
    for pod in found:
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not pod.get("hostNetwork")
        assert all("emptyDir" in volume for volume in pod.get("volumes", ()))
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "readOnlyRootFilesystem": True,
            }
            assert container["resources"]["requests"].keys() == {"cpu", "memory"}
            assert {"startupProbe", "livenessProbe", "readinessProbe"} <= container.keys()


def test_two_of_each_run_and_one_may_be_disrupted(installed):
    budgets = of_kind(installed, "PodDisruptionBudget")
    deployments = of_kind(installed, "Deployment")
    # The console keeps sessions: one serves, and a client would not follow to another.
    assert deployments.pop("lockstep-console")["spec"]["replicas"] == 1
    assert budgets.keys() == deployments.keys() == {"lockstep-scheduler", "lockstep-controllers"}
    for name, deployment in deployments.items():
        labels = deployment["spec"]["template"]["metadata"]["labels"]
        assert deployment["spec"]["replicas"] == 2
        assert budgets[name]["spec"]["maxUnavailable"] == 1
        assert budgets[name]["spec"]["selector"]["matchLabels"].items() <= labels.items()


def test_everything_with_a_namespace_is_in_one(installed):
    spaces = {o["metadata"].get("namespace") for o in installed}
    assert spaces == {None, SYSTEM_NAMESPACE}


@pytest.mark.parametrize(
    ("values", "gone"),
    [
        (("crds.install=false",), {"CustomResourceDefinition"}),
        (("podDisruptionBudget.enabled=false",), {"PodDisruptionBudget"}),
        (("networkPolicy.enabled=false",), {"NetworkPolicy"}),
        (("metrics.enabled=false", "console.enabled=false"), {"Service"}),
    ],
)
def test_what_is_not_wanted_is_left_out(helm, values, gone):
    before, after = ({o["kind"] for o in objects} for objects in (helm(), helm(*values)))
    assert before - after == gone


def test_without_metrics_no_part_may_ask_who_scrapes(helm):
    rules = [r for o in helm("metrics.enabled=false") if o["kind"] in RULES_OF for r in o["rules"]]
    assert not any(rule in rules for rule in METRICS)
    for pod in pods(helm("metrics.enabled=false", "console.enabled=false")):
        assert [port["name"] for port in pod["containers"][0]["ports"]] == ["probes"]


def test_a_certificate_is_mounted_where_the_parts_look_for_it(helm):
    for pod in pods(helm("metrics.certificateSecret=served", "console.enabled=false")):
        (container,) = pod["containers"]
        (mount,) = container["volumeMounts"]
        (volume,) = pod["volumes"]
        assert f"--metrics-certificate={mount['mountPath']}" in container["args"]
        assert (mount["name"], volume["secret"]["secretName"]) == (volume["name"], "served")


@pytest.mark.parametrize(
    ("values", "image"),
    [
        ((), f"lockstep:{__version__}"),
        (("image.repository=r.example.org/l", "image.tag=v2"), "r.example.org/l:v2"),
        (("image.tag=v2", f"image.digest=sha256:{'a' * 64}"), f"lockstep@sha256:{'a' * 64}"),
    ],
)
def test_the_image_is_the_one_asked_for(helm, values: Values, image: str):
    assert {c["image"] for pod in pods(helm(*values)) for c in pod["containers"]} == {image}


def test_a_monitor_finds_the_services_of_the_metrics(helm):
    objects = helm("metrics.serviceMonitor.enabled=true")
    (monitor,) = of_kind(objects, "ServiceMonitor").values()
    wanted = monitor["spec"]["selector"]["matchLabels"]
    services = [o for name, o in of_kind(objects, "Service").items() if name.endswith("-metrics")]
    assert len(services) == 2
    for service in services:
        assert wanted.items() <= service["metadata"]["labels"].items()
        assert [port["name"] for port in service["spec"]["ports"]] == [
            endpoint["port"] for endpoint in monitor["spec"]["endpoints"]
        ]


@pytest.mark.parametrize(
    "value",
    [
        "schedular.replicas=3",
        "scheduler.replicas=two",
        "scheduler.resources.request.cpu=1",
        "probes.port=80",
        "image.digest=latest",
        "image.tag=110",
        "image.pullPolicy=Sometimes",
        "namespace.podSecurity=strict",
        "simulatedNodes.spec=many",
        "console.origins={http://console.example.org}",
        "console.oidc.issuer=http://issuer.example.org",
        "creatorPolicy=perhaps",
    ],
)
def test_a_value_that_is_none_is_refused(helm, value):
    with pytest.raises(subprocess.CalledProcessError):
        helm(value)


def test_the_console_speaks_tls_and_may_only_read(installed):
    (container,) = of_kind(installed, "Deployment")["lockstep-console"]["spec"]["template"]["spec"][
        "containers"
    ]
    assert "--self-signed" in container["args"]
    (port,) = container["ports"]
    (served,) = of_kind(installed, "Service")["lockstep-console"]["spec"]["ports"]
    assert served["targetPort"] == port["name"]
    assert f"--port={port['containerPort']}" in container["args"]
    rules = of_kind(installed, "ClusterRole")["lockstep-console"]["rules"]
    assert {verb for rule in rules for verb in rule["verbs"]} == {"list", "watch"}
    assert not any("secrets" in rule["resources"] for rule in rules)


def test_the_console_impersonates_only_behind_a_proxy(helm):
    proxied = ("console.proxy.header=X-User", "console.proxy.networks={10.0.0.0/8}")
    for values, wanted in (((), []), (proxied, ["lockstep-console-impersonates"])):
        objects = helm(*values)
        rules = {name: o["rules"] for name, o in of_kind(objects, "ClusterRole").items()}
        may = [name for name, held in rules.items() if "impersonate" in str(held)]
        assert may == wanted
        bindings = of_kind(objects, "ClusterRoleBinding")
        assert [name for name in bindings if name.endswith("impersonates")] == wanted


def test_what_signing_in_takes_is_mounted_where_the_console_looks(helm):
    values = ("tlsSecret=t", "oidc.issuer=https://i", "oidc.client=c", "oidc.secret=s",
              "oidc.caConfigMap=m", "origins={https://console.example.org}")  # fmt: skip
    objects = helm(*(f"console.{value}" for value in values))
    pod = of_kind(objects, "Deployment")["lockstep-console"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    mounts = {m["name"]: m["mountPath"] for m in container["volumeMounts"]}
    assert mounts.keys() == {volume["name"] for volume in pod["volumes"]}
    for argument, name, file in (
        ("certificate", "tls", "tls.crt"),
        ("key", "tls", "tls.key"),
        ("oidc-secret-file", "oidc", "client-secret"),
        ("oidc-ca", "issuer", "ca.crt"),
    ):
        assert f"--{argument}={mounts[name]}/{file}" in container["args"]
    assert "--origin=https://console.example.org" in container["args"]


def test_the_gateway_is_where_the_controllers_say(helm):
    assert "lockstep-gateway" not in of_kind(helm(), "Deployment")
    objects = helm("gateway.enabled=true")
    deployments = of_kind(objects, "Deployment")
    service = of_kind(objects, "Service")["lockstep-gateway"]
    (container,) = deployments["lockstep-gateway"]["spec"]["template"]["spec"]["containers"]
    (port,) = service["spec"]["ports"]
    assert container["ports"] == [{"name": port["targetPort"], "containerPort": port["port"]}]
    url = f"http://lockstep-gateway.{SYSTEM_NAMESPACE}.svc:{port['port']}"
    controllers = deployments["lockstep-controllers"]["spec"]["template"]["spec"]["containers"]
    assert f"--gateway={url}" in controllers[0]["args"]
    rules = of_kind(objects, "ClusterRole")["lockstep-gateway"]["rules"]
    assert rules == list(PERMISSIONS["gateway"].cluster)
    outside = helm("gateway.enabled=true", "gateway.url=https://jupyter.example.org")
    controllers = of_kind(outside, "Deployment")["lockstep-controllers"]["spec"]["template"]
    assert "--gateway=https://jupyter.example.org" in controllers["spec"]["containers"][0]["args"]


def test_creators_are_written_down_where_the_cluster_can(helm):
    assert not of_kind(helm(), "MutatingAdmissionPolicy")
    found = helm("creatorPolicy=true")
    assert of_kind(found, "MutatingAdmissionPolicy").keys() == {creator_policy.NAME}
    assert of_kind(found, "MutatingAdmissionPolicyBinding").keys() == {creator_policy.NAME}
