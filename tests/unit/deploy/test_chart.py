"""The chart and the manifest: they say what the program says, and what clusters demand."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any

import pytest
import typer
import yaml
from tests.support.installed import account
from tools.deploy.generate import (
    CHART,
    IN_CHART,
    MANIFEST,
    generated,
    manifest,
    render,
)
from tools.helm import build

from lockstep import __version__
from lockstep.api import crd, creator_policy, queue_policy
from lockstep.api.dataset_cache import DRIVER
from lockstep.api.names import GROUP, NODES_NAMESPACE, SYSTEM_NAMESPACE
from lockstep.api.permissions.parts import PERMISSIONS
from lockstep.api.permissions.rules import METRICS
from lockstep.api.presentation import PRESENTATIONS
from lockstep.cli.main import ENTRIES

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
def test_the_charts_generated_files_are_up_to_date(path):
    assert path.read_text() == generated()[path], "run `make manifests` and commit deploy/"


def test_the_manifest_is_the_chart_as_helm_renders_it(helm):
    program = build.find()
    assert program is not None
    assert MANIFEST.read_text() == manifest(program), "run `make manifests` and commit deploy/"


def test_the_webhook_for_shares_is_where_its_configuration_says(helm):
    assert not of_kind(helm("admission.enabled=false"), "MutatingWebhookConfiguration")
    objects = helm()
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


@pytest.mark.parametrize(("spec", "wanted"), [("2x8", ["2x8"]), ("", [])])
def test_simulated_nodes_may_be_those_of_pools_alone(helm, spec, wanted):
    rendered = helm("simulatedNodes.enabled=true", f"simulatedNodes.spec={spec}")
    found = of_kind(rendered, "Deployment")["lockstep-simulate-nodes"]
    (container,) = found["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["simulate-nodes", *wanted, "--seed=0"]


def test_each_definition_may_be_read_by_users_of_its_kind():
    names = {f"{shown.resource.plural}.{GROUP}" for shown in PRESENTATIONS}
    for part in ("scheduler", "controllers"):
        found = [
            r
            for r in PERMISSIONS[part].cluster
            if "customresourcedefinitions" in r["resources"] and names & set(r["resourceNames"])
        ]
        assert [set(rule["resourceNames"]) for rule in found] == [names]


def test_kinds_say_which_lockstep_made_them(installed):
    marks = {one["metadata"]["name"]: one["metadata"]["annotations"] for one in crd.manifests()}
    found = of_kind(installed, "CustomResourceDefinition")
    assert found.keys() == marks.keys()
    for name, one in found.items():
        assert marks[name].items() <= one["metadata"]["annotations"].items()


def test_nobody_may_do_everything(installed):
    for one in installed:
        if one["kind"] in RULES_OF:
            for rule in one["rules"]:
                assert "*" not in [*rule["verbs"], *rule.get("resources", [])]


def test_pods_may_do_nothing_on_their_node(installed):
    found = list(pods(installed))
    assert len(found) == 7
    for pod in found:
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not pod.get("hostNetwork")
        sorts = {sort for volume in pod.get("volumes", ()) for sort in volume} - {"name"}
        assert sorts <= {"emptyDir", "persistentVolumeClaim"}
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
    # Console and gateway keep sessions, the recorder a file: one serves.
    for name in ("console", "gateway", "recorder"):
        assert deployments.pop(f"lockstep-{name}")["spec"]["replicas"] == 1
    several = {f"lockstep-{one}" for one in ("scheduler", "controllers", "router", "admission")}
    assert budgets.keys() == deployments.keys() == several
    for name, deployment in deployments.items():
        labels = deployment["spec"]["template"]["metadata"]["labels"]
        assert deployment["spec"]["replicas"] == 2
        assert budgets[name]["spec"]["maxUnavailable"] == 1
        assert budgets[name]["spec"]["selector"]["matchLabels"].items() <= labels.items()


def test_privileged_pods_are_in_a_namespace_of_their_own(installed):
    levels = {
        name: one["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
        for name, one in of_kind(installed, "Namespace").items()
    }
    assert levels == {SYSTEM_NAMESPACE: "restricted", NODES_NAMESPACE: "privileged"}
    makers = ("Deployment", "DaemonSet")
    privileged = {
        one["metadata"]["namespace"]: one["kind"] for one in installed if one["kind"] in makers
    }
    assert privileged == {SYSTEM_NAMESPACE: "Deployment", NODES_NAMESPACE: "DaemonSet"}
    # What other devices are called is in a namespace of other systems.
    spaces = {one["metadata"].get("namespace") for one in installed}
    assert spaces == {None, "kube-system", *levels}


@pytest.mark.parametrize(
    ("name", "network", "paths"),
    [
        ("agent", True, {"/var/lib/kubelet", "/var/run/cdi", "/dev", "/", "FRONT"}),
        ("data-cache", False, {"/var/lib/kubelet", "/dev", "/sys/fs/cgroup", "DATA"}),
    ],
)
def test_parts_of_nodes_change_no_more_than_they_must(installed, name, network, paths):
    pod = of_kind(installed, "DaemonSet")[f"lockstep-{name}"]["spec"]["template"]["spec"]
    assert bool(pod.get("hostNetwork")) is network
    assert pod["hostPID"] is True
    assert pod["tolerations"] == [{"operator": "Exists"}]
    known = {"/var/lib/lockstep/front": "FRONT", "/var/lib/lockstep/data": "DATA"}
    own = [volume["emptyDir"] for volume in pod["volumes"] if "emptyDir" in volume]
    assert own == ([{"sizeLimit": "64Mi"}] if name == "agent" else [])
    seen = {one["hostPath"]["path"] for one in pod["volumes"] if "emptyDir" not in one}
    assert {known.get(one, one) for one in seen} == paths
    (container,) = pod["containers"]
    assert container["securityContext"]["privileged"] is True
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    for one in pod.get("initContainers", ()):
        assert one["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert "privileged" not in one["securityContext"]
    readers = {mount["name"] for mount in container["volumeMounts"] if mount.get("readOnly")}
    assert readers == ({"host", "front"} if name == "agent" else set())


def test_parts_are_called_with_options_that_they_have(installed):
    for one in installed:
        if one["kind"] not in ("Deployment", "DaemonSet"):
            continue
        pod = one["spec"]["template"]["spec"]
        for container in [*pod.get("initContainers", ()), *pod["containers"]]:
            name, *options = container["args"]
            command = typer.main.get_command(app_of(name))
            given = {option.partition("=")[0] for option in options}
            known = {word for param in command.params for word in param.opts}
            assert given <= known, name


def app_of(name: str) -> Any:
    """Return the one command *name* as an application."""
    (entry,) = (one for one in ENTRIES if one.name == name)
    every = import_module(f"lockstep.cli.{entry.module}").app
    (chosen,) = (
        one
        for one in every.registered_commands
        if (one.name or one.callback.__name__.replace("_", "-")) == name
    )
    alone = typer.Typer()
    alone.registered_commands = [chosen]
    return alone


def test_the_driver_that_volumes_name_is_registered(installed):
    (driver,) = of_kind(installed, "CSIDriver").values()
    assert driver["metadata"]["name"] == DRIVER
    assert driver["spec"]["podInfoOnMount"] is True


@pytest.mark.parametrize("named", [[], ["/mnt/nfs", "/srv"]])
def test_datasets_show_named_directories_of_nodes_alone(helm, named):
    values = [f"data.localDirectories={{{','.join(named)}}}"] if named else []
    rendered = of_kind(helm(*values), "DaemonSet")["lockstep-data-cache"]
    pod = rendered["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    args = [one for one in container["args"] if one.startswith("--local=")]
    assert args == [f"--local={one}" for one in named]
    mounted = {one["name"]: one for one in container["volumeMounts"]}
    shown = {one["name"]: one["hostPath"]["path"] for one in pod["volumes"] if "hostPath" in one}
    found = [one for one in mounted.values() if one["name"].startswith("local-")]
    assert [(one["mountPath"], one["readOnly"]) for one in found] == [(n, True) for n in named]
    assert [shown[one["name"]] for one in found] == named


@pytest.mark.parametrize(
    ("values", "named"),
    [
        (("router.ingress.enabled=true",), "router.tokensSecret"),
        (("router.gatewayApi.enabled=true", "router.tokensSecret=t"), "router.domain"),
    ],
)
def test_services_are_shown_outside_with_tokens_alone(helm, values, named):
    with pytest.raises(subprocess.CalledProcessError) as refused:
        helm(*values)
    assert named in refused.value.stderr


@pytest.mark.parametrize(("how", "kind"), [("ingress", "Ingress"), ("gatewayApi", "HTTPRoute")])
def test_services_are_reached_from_outside_by_value(helm, how, kind):
    objects = helm(f"router.{how}.enabled=true", "router.tokensSecret=t", "router.domain=a.org")
    (led,) = of_kind(objects, kind).values()
    hosts = led["spec"].get("hostnames") or [rule["host"] for rule in led["spec"]["rules"]]
    assert hosts == ["*.a.org"]
    (outside,) = (
        port
        for port in of_kind(objects, "Service")["lockstep-router"]["spec"]["ports"]
        if port["name"] == "outside"
    )
    pod = of_kind(objects, "Deployment")["lockstep-router"]["spec"]["template"]["spec"]
    assert f"--port={outside['port']}" in pod["containers"][0]["args"]
    assert "--tokens=/etc/lockstep/tokens/tokens" in pod["containers"][0]["args"]


def test_the_default_queue_is_made_once_after_its_kind(helm):
    (queue,) = of_kind(helm(), "Queue").values()
    assert queue["metadata"]["annotations"]["helm.sh/hook"] == "post-install"
    assert not of_kind(helm("defaultQueue.create=false"), "Queue")


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        ("agent", "DaemonSet"),
        ("data", "DaemonSet"),
        ("router", "Deployment"),
        ("recorder", "Deployment"),
        ("gateway", "Deployment"),
        ("admission", "Deployment"),
    ],
)
def test_each_part_can_be_left_out(helm, part, kind):
    name = {"data": "data-cache"}.get(part, part)
    without = helm(f"{part}.enabled=false")
    assert f"lockstep-{name}" in of_kind(helm(), kind)
    assert not [one for one in without if one["metadata"]["name"] == f"lockstep-{name}"]


@pytest.mark.parametrize(
    ("values", "gone"),
    [
        (("crds.install=false",), {"CustomResourceDefinition"}),
        (("podDisruptionBudget.enabled=false",), {"PodDisruptionBudget"}),
        (("networkPolicy.enabled=false",), {"NetworkPolicy"}),
        (("data.enabled=false", "agent.enabled=false"), {"CSIDriver", "DaemonSet", "Namespace"}),
        (("recorder.enabled=false",), {"PersistentVolumeClaim"}),
        (("metrics.dashboard.enabled=false",), {"ConfigMap"}),
    ],
)
def test_what_is_not_wanted_is_left_out(helm, values, gone):
    before, after = ({o["kind"] for o in objects} for objects in (helm(), helm(*values)))
    assert before - after == gone


def test_without_metrics_no_part_may_ask_who_scrapes(helm):
    """The gateway asks for another reason: whose token a request for a kernel bears."""
    roles = [o for o in helm("metrics.enabled=false") if o["kind"] in RULES_OF]
    asking = {o["metadata"]["name"] for o in roles if any(rule in o["rules"] for rule in METRICS)}
    assert asking == {"lockstep-gateway"}
    for pod in [*pods(helm("metrics.enabled=false"))]:
        assert "metrics" not in [port["name"] for port in pod["containers"][0]["ports"]]


def test_a_certificate_is_mounted_where_the_parts_look_for_it(helm):
    objects = helm("metrics.certificateSecret=served")
    served = [name for name in IN_CHART if PERMISSIONS[name].serves]
    assert served == ["scheduler", "controllers", "agent", "data-cache", "recorder"]
    for name in served:
        kind = "DaemonSet" if PERMISSIONS[name].on_nodes else "Deployment"
        pod = of_kind(objects, kind)[f"lockstep-{name}"]["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        (volume,) = (v for v in pod["volumes"] if "secret" in v)
        (mount,) = (m for m in container["volumeMounts"] if m["name"] == volume["name"])
        assert f"--metrics-certificate={mount['mountPath']}" in container["args"]
        assert volume["secret"]["secretName"] == "served"


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
    assert len(services) == 5
    spaces = {one["metadata"]["namespace"] for one in services}
    assert spaces == set(monitor["spec"]["namespaceSelector"]["matchNames"])
    for service in services:
        assert wanted.items() <= service["metadata"]["labels"].items()
        assert [port["name"] for port in service["spec"]["ports"]] == [
            endpoint["port"] for endpoint in monitor["spec"]["endpoints"]
        ]


@pytest.mark.parametrize(
    "value",
    [
        "scheduler.replicas=two",
        "probes.port=80",
        "image.digest=latest",
        "image.tag=110",
        "image.pullPolicy=Sometimes",
        "namespace.podSecurity=strict",
        "simulatedNodes.spec=many",
        "console.origins={http://console.example.org}",
        "console.oidc.issuer=http://issuer.example.org",
        "creatorPolicy=perhaps",
        "agent.driverRoot=run/nvidia",
        "agent.enable=true",
        "data.port=80",
        "data.volume=big",
        "router.domain=https://ai.example",
        "recorder.volume.size=much",
        "nodes.namespace=Lockstep_Nodes",
        "metrics.rules.enabled=perhaps",
    ],
)
def test_a_wrong_value_is_refused_by_its_name(helm, value):
    with pytest.raises(subprocess.CalledProcessError) as refused:
        helm(value)
    *above, last = value.partition("=")[0].split(".")
    told = refused.value.stderr
    assert last in told
    assert not above or above[0] in told


def test_no_policy_holds_pods_where_its_parameters_are_gone(installed):
    """kube-apiserver treats a kind of parameters that is not there as a failure of the policy."""
    everywhere = [
        policy["spec"]["failurePolicy"]
        for policy in of_kind(installed, "ValidatingAdmissionPolicy").values()
        if "paramKind" in policy["spec"]
        and not policy["spec"]["matchConstraints"]["namespaceSelector"]
    ]
    assert everywhere == ["Ignore"]


@pytest.mark.parametrize(
    ("value", "unknown"),
    [
        ("schedular.replicas=3", "'schedular' not allowed"),
        (
            "scheduler.resources.request.cpu=1",
            "'/scheduler/resources': additional properties 'request'",
        ),
    ],
)
def test_an_unknown_section_is_refused_by_its_name(helm, value, unknown):
    with pytest.raises(subprocess.CalledProcessError) as refused:
        helm(value)
    assert unknown in refused.value.stderr


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
    objects = helm()
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
    outside = helm("gateway.url=https://jupyter.example.org")
    controllers = of_kind(outside, "Deployment")["lockstep-controllers"]["spec"]["template"]
    assert "--gateway=https://jupyter.example.org" in controllers["spec"]["containers"][0]["args"]


def test_creators_are_written_down_where_the_cluster_can(helm):
    assert not of_kind(helm(), "MutatingAdmissionPolicy")
    found = helm("creatorPolicy=true", "queueDefault=true")
    names = {creator_policy.NAME, queue_policy.DEFAULT_NAME}
    assert of_kind(found, "MutatingAdmissionPolicy").keys() == names
    assert of_kind(found, "MutatingAdmissionPolicyBinding").keys() == names
