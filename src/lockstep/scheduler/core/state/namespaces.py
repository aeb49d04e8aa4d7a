"""Labels of namespaces in the cluster's state: by them workloads may use queues."""

from __future__ import annotations

from lockstep.api.core import AnyObject
from lockstep.scheduler.core.state.cluster import Cluster


def set_namespace(cluster: Cluster, namespace: AnyObject) -> None:
    """Take in the labels of a namespace; its workloads are looked at again when they changed."""
    name, labels = namespace.metadata.name, namespace.metadata.labels
    if cluster.namespaces.get(name) != labels:
        cluster.namespaces[name] = labels
        _touch(cluster, name)


def remove_namespace(cluster: Cluster, name: str) -> None:
    """Forget a namespace."""
    if cluster.namespaces.pop(name, None) is not None:
        _touch(cluster, name)


def _touch(cluster: Cluster, name: str) -> None:
    touched = [key for key in cluster.workloads if key.namespace == name]
    if touched:
        cluster.freed += 1
        cluster.touched.update(touched)
