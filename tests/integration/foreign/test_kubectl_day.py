"""A day with kubectl, step by step."""

from __future__ import annotations

from typing import Final

from tests.support.kubectl import Kubectl

POD: Final = """
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec: {containers: [{name: main, image: nginx, command: [sleep, "60"]}]}
"""
DEPLOYMENT: Final = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: front}
spec:
  replicas: 1
  selector: {matchLabels: {app: front}}
  template:
    metadata: {labels: {app: front}}
    spec: {containers: [{name: main, image: nginx}]}
"""

# Each step: arguments, standard input, and what must be in the output.
DAY: Final[list[tuple[str, str, str]]] = [
    ("version", "", "Server Version"),
    ("api-resources", "", "deployments"),
    ("explain pod.spec.nodeName", "", "NodeName"),
    ("auth can-i create pods", "", "yes"),
    ("auth can-i list pods --as=nobody", "", "no"),
    ("auth whoami", "", "kubernetes-admin"),
    ("create namespace day", "", "namespace/day created"),
    ("create configmap settings --from-literal=a=1", "", "configmap/settings created"),
    ("get configmap settings -o jsonpath={.data.a}", "", "1"),
    ("create secret generic keys --from-literal=k=v", "", "secret/keys created"),
    ("create -f -", POD, "pod/web created"),
    ("create -f -", POD, "AlreadyExists"),
    ("get pods", "", "Pending"),
    ("get pod web -o yaml", "", "schedulerName: default-scheduler"),
    ("describe pod web", "", "QoS Class"),
    ("label pod web tier=front", "", "pod/web labeled"),
    ("annotate pod web note=x", "", "pod/web annotated"),
    ("get pods -l tier=front -o name", "", "pod/web"),
    ("patch pod web -p {\"metadata\":{\"labels\":{\"tier\":null}}}", "", "pod/web patched"),
    ("apply -f -", DEPLOYMENT, "deployment.apps/front created"),
    ("apply -f -", DEPLOYMENT, "deployment.apps/front unchanged"),
    ("apply -f -", DEPLOYMENT.replace("replicas: 1", "replicas: 2"), "front configured"),
    ("apply --server-side --field-manager=me -f -", DEPLOYMENT, "failed with 1 conflict"),
    ("apply --server-side --force-conflicts -f -", DEPLOYMENT, "front serverside-applied"),
    ("diff -f -", DEPLOYMENT, ""),
    ("scale deployment front --replicas=5", "", "deployment.apps/front scaled"),
    ("get deployment front", "", "0/5"),
    ("apply --dry-run=server -f -", DEPLOYMENT, "(server dry run)"),
    ("apply -f -", DEPLOYMENT.replace("replicas:", "replica:"), 'unknown field "spec.replica"'),
    ("apply -f -", DEPLOYMENT.replace("replicas: 1", "replicas: -1"), "spec.replicas"),
    ("create token default", "", "eyJ"),
    ("get --raw /readyz?verbose", "", "readyz check passed"),
    ("get events", "", "No resources found"),
    ("wait pod/web --for=jsonpath={.status.phase}=Pending --timeout=5s", "", "condition met"),
    ("delete pod web --wait=true --timeout=5s", "", 'pod "web" deleted'),
    ("delete deployment,configmap --all", "", '"front" deleted'),
    ("delete namespace day --timeout=10s", "", 'namespace "day" deleted'),
]  # fmt: skip


def test_a_day_with_kubectl(kubectl: Kubectl) -> None:
    for step, stdin, expected in DAY:
        done = kubectl.run(*step.split(), stdin=stdin or None)
        output = done.stdout + done.stderr
        assert expected in output, f"kubectl {step}: {output}"
