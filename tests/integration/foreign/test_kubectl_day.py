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

MAPS: Final = """
apiVersion: v1
kind: ConfigMap
metadata: {name: kept, labels: {app: maps}}
data: {word: before}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: pruned, labels: {app: maps}}
"""
KEPT: Final = MAPS.partition("---")[0]
RIGHTS: Final = """
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: default}
rules: [{apiGroups: [""], resources: [pods], verbs: [get, list]}]
"""
NODE: Final = """
apiVersion: v1
kind: Node
metadata: {name: machine}
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
    ("apply --prune -l app=maps -f -", MAPS, "configmap/pruned created"),
    ("apply --prune -l app=maps -f -", KEPT, "configmap/pruned pruned"),
    ("edit configmap kept", "", "configmap/kept edited"),
    ("get configmap kept -o jsonpath={.data.word}", "", "after"),
    ("apply -f -", KEPT, "configmap/kept configured"),
    ("apply --prune --applyset=maps -n default -f -", MAPS, "configmap/pruned created"),
    ("apply --prune --applyset=maps -n default -f -", KEPT, "configmap/pruned pruned"),
    ("replace --force -f -", KEPT, "configmap/kept replaced"),
    ("set env deployment/front A=b", "", "deployment.apps/front env updated"),
    ("set image deployment/front main=nginx:2", "", "deployment.apps/front image updated"),
    ("set resources deployment/front --limits=cpu=1", "", "front resource requirements updated"),
    ("expose deployment front --port=80", "", "service/front exposed"),
    ("get service front -o jsonpath={.spec.clusterIP}", "", "10.96."),
    ("get all", "", "deployment.apps/front"),
    ("rollout history deployment/front", "", "No rollout history found"),
    ("create cronjob nightly --image=x --schedule=@daily", "", "cronjob.batch/nightly created"),
    ("create job now --from=cronjob/nightly", "", "job.batch/now created"),
    ("create ingress in --rule=a.b/=front:80", "", "ingress.networking.k8s.io/in created"),
    ("create quota small --hard=configmaps=1", "", "resourcequota/small created"),
    ("create configmap more", "", "exceeded quota: small, requested: configmaps=1"),
    ("delete quota small", "", '"small" deleted'),
    ("auth reconcile -f -", RIGHTS, "role.rbac.authorization.k8s.io/reader reconciled"),
    ("create rolebinding reads --role=reader --user=jane", "", "reads created"),
    ("auth can-i list pods --as=jane", "", "yes"),
    ("auth can-i delete pods --as=jane", "", "no"),
    ("auth can-i --list --as=jane", "", "[get list]"),
    ("create -f -", NODE, "node/machine created"),
    ("cordon machine", "", "node/machine cordoned"),
    ("get nodes", "", "SchedulingDisabled"),
    ("uncordon machine", "", "node/machine uncordoned"),
    ("taint node machine a=b:NoSchedule", "", "node/machine tainted"),
    ("describe node machine", "", "a=b:NoSchedule"),
    ("taint node machine a-", "", "node/machine untainted"),
    ("drain machine --ignore-daemonsets", "", "node/machine drained"),
    ("delete node machine", "", '"machine" deleted'),
    ("get priorityclasses", "", "system-node-critical"),
    ("top pods", "", "Metrics API not available"),
    ("top nodes", "", "Metrics API not available"),
    ("api-versions", "", "apps/v1"),
    ("cluster-info", "", "control plane is running at"),
    ("create token default", "", "eyJ"),
    ("get --raw /readyz?verbose", "", "readyz check passed"),
    ("get events", "", "No resources found"),
    ("events", "", "No events found"),
    ("wait pod/web --for=jsonpath={.status.phase}=Pending --timeout=5s", "", "condition met"),
    ("delete job now --cascade=orphan", "", '"now" deleted'),
    ("delete cronjob nightly --cascade=foreground --timeout=5s", "", '"nightly" deleted'),
    ("delete pod web --wait=true --timeout=5s", "", 'pod "web" deleted'),
    ("delete deployment,configmap --all", "", '"front" deleted'),
    ("delete namespace day --timeout=10s", "", 'namespace "day" deleted'),
]  # fmt: skip


def test_a_day_with_kubectl(kubectl: Kubectl) -> None:
    for step, stdin, expected in DAY:
        done = kubectl.run(*step.split(), stdin=stdin or None)
        output = done.stdout + done.stderr
        assert expected in output, f"kubectl {step}: {output}"
