"""Workloads: kinds that make pods from a template."""

from __future__ import annotations

from typing import Final

from tests.support.conformance.script.ask import (
    Ask,
    delete,
    deployment,
    get,
    merge,
    namespace,
    new,
    of,
    post,
    put,
    template,
)

NS: Final = "kinds"
DEPLOYMENTS: Final = of("apps", NS, "deployments")
JOBS: Final = of("batch", NS, "jobs")
SELECT: Final = {"selector": {"matchLabels": {"app": "d"}}, "template": template()}
JOB_TEMPLATE: Final = {
    "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
}

SCRIPT: Final[tuple[Ask, ...]] = (
    *namespace(NS),
    post("deployment", DEPLOYMENTS, deployment("d")),
    get("scale", f"{DEPLOYMENTS}/d/scale"),
    merge("scale up", f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 5}}),
    merge("scale below nothing", f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": -1}}),
    put(
        "scale replaced",
        f"{DEPLOYMENTS}/d/scale",
        {"metadata": {"name": "d"}, "spec": {"replicas": 3}},
    ),
    put(
        "scale replaced, stale",
        f"{DEPLOYMENTS}/d/scale",
        {"metadata": {"name": "d", "resourceVersion": "1"}, "spec": {"replicas": 4}},
    ),
    put(
        "scale of another name",
        f"{DEPLOYMENTS}/d/scale",
        {"metadata": {"name": "e"}, "spec": {"replicas": 4}},
    ),
    get("scale of nobody", f"{DEPLOYMENTS}/none/scale"),
    merge(
        "deployment, another selector",
        f"{DEPLOYMENTS}/d",
        {"spec": {"selector": {"matchLabels": {"app": "e"}}}},
    ),
    merge(
        "deployment, status",
        f"{DEPLOYMENTS}/d/status",
        {"status": {"replicas": 2, "observedGeneration": 1}},
    ),
    merge("deployment, negative status", f"{DEPLOYMENTS}/d/status", {"status": {"replicas": -2}}),
    merge("deployment, labels only", f"{DEPLOYMENTS}/d", {"metadata": {"labels": {"a": "b"}}}),
    merge("deployment, paused", f"{DEPLOYMENTS}/d", {"spec": {"paused": True}}),
    new("deployment without a template", DEPLOYMENTS, {"selector": {"matchLabels": {"a": "b"}}}),
    new("deployment without a selector", DEPLOYMENTS, {"template": template()}),
    new(
        "deployment of another selector",
        DEPLOYMENTS,
        {"selector": {"matchLabels": {"a": "b"}}, "template": template()},
    ),
    new("deployment of negative size", DEPLOYMENTS, {**SELECT, "replicas": -1}),
    new("deployment, a bad strategy", DEPLOYMENTS, {**SELECT, "strategy": {"type": "Slow"}}),
    new(
        "deployment, no room to roll",
        DEPLOYMENTS,
        {**SELECT, "strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}},
    ),
    new(
        "deployment, a bad restart policy",
        DEPLOYMENTS,
        {**SELECT, "template": template(restartPolicy="Never")},
    ),
    new("deployment, a wrong type", DEPLOYMENTS, {**SELECT, "replicas": "two"}),
    new("replica set", of("apps", NS, "replicasets"), SELECT, "rs"),
    new(
        "stateful set",
        of("apps", NS, "statefulsets"),
        {
            **SELECT,
            "serviceName": "s",
            "volumeClaimTemplates": [
                {
                    "metadata": {"name": "v"},
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": "1Gi"}},
                    },
                }
            ],
        },
        "sts",
    ),
    merge(
        "stateful set, another service",
        f"{of('apps', NS, 'statefulsets')}/sts",
        {"spec": {"serviceName": "t"}},
    ),
    get("scale of a stateful set", f"{of('apps', NS, 'statefulsets')}/sts/scale"),
    new("daemon set", of("apps", NS, "daemonsets"), SELECT, "ds"),
    new(
        "controller revision",
        of("apps", NS, "controllerrevisions"),
        None,
        "cr",
        revision=1,
        data={"a": 1},
    ),
    new("job", JOBS, {"template": JOB_TEMPLATE}, "j"),
    new(
        "indexed job",
        JOBS,
        {
            "template": JOB_TEMPLATE,
            "completionMode": "Indexed",
            "completions": 3,
            "parallelism": 2,
            "backoffLimitPerIndex": 1,
        },
        "ij",
    ),
    new(
        "indexed job without a count", JOBS, {"template": JOB_TEMPLATE, "completionMode": "Indexed"}
    ),
    new("job that always restarts", JOBS, {"template": template()}),
    new(
        "job with a selector",
        JOBS,
        {"template": JOB_TEMPLATE, "selector": {"matchLabels": {"a": "b"}}},
    ),
    new("job with a negative count", JOBS, {"template": JOB_TEMPLATE, "parallelism": -1}),
    merge("job, another count", f"{JOBS}/j", {"spec": {"completions": 5}}),
    merge("job, more at once", f"{JOBS}/j", {"spec": {"parallelism": 5}}),
    merge(
        "job, another template",
        f"{JOBS}/j",
        {"spec": {"template": {"spec": {"containers": [{"name": "x", "image": "y"}]}}}},
    ),
    merge("job, suspended", f"{JOBS}/j", {"spec": {"suspend": True}}),
    merge(
        "job, status",
        f"{JOBS}/j/status",
        {"status": {"active": 1, "startTime": "2020-01-01T00:00:00Z"}},
    ),
    delete("job gone", f"{JOBS}/j"),
    new(
        "cron job",
        of("batch", NS, "cronjobs"),
        {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": JOB_TEMPLATE}}},
        "cj",
    ),
    new(
        "cron job, a bad schedule",
        of("batch", NS, "cronjobs"),
        {"schedule": "often", "jobTemplate": {"spec": {"template": JOB_TEMPLATE}}},
    ),
)
