"""Well-known labels, annotations, resource names and identities."""

from __future__ import annotations

from typing import Final

GROUP: Final = "lockstep.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"

SCHEDULER_NAME: Final = "lockstep"

# Labels on pods.
GANG_LABEL: Final = "lockstep.dev/gang"
GANG_GROUP_LABEL: Final = "lockstep.dev/gang-group"
JOB_LABEL: Final = "lockstep.dev/job"
ROLE_LABEL: Final = "lockstep.dev/role"
INDEX_LABEL: Final = "lockstep.dev/index"
ATTEMPT_LABEL: Final = "lockstep.dev/attempt"
QUEUE_LABEL: Final = "lockstep.dev/queue"

# Annotations.
GPUS_ANNOTATION: Final = "lockstep.dev/gpus"
"""On a pod, written with its binding: indices of its GPUs on the node, as ``0,1,2``."""
NICS_ANNOTATION: Final = "lockstep.dev/nics"
"""On a pod, written with its binding: indices of its NICs on the node, as ``0,1,2``."""
HCAS_ANNOTATION: Final = "lockstep.dev/hcas"
"""On a pod, written with its binding: names of those NICs, as ``mlx5_0,mlx5_1``, where known."""
NUMA_ANNOTATION: Final = "lockstep.dev/numa"
"""On a pod, written with its binding: the NUMA node that its CPUs are counted on, if one is."""
ALIGN_REQUIRED_ANNOTATION: Final = "lockstep.dev/align-required"
"""On a pod: which of its devices must be close together, some of ``nvlink,pcie,numa``."""
ALIGN_PREFERRED_ANNOTATION: Final = "lockstep.dev/align-preferred"
"""On a pod: which of its devices had better be close together."""
SIZE_ANNOTATION: Final = "lockstep.dev/size"
"""On a job's pod: the sizes of the roles that its environment was made for."""
RANK_ANNOTATION: Final = "lockstep.dev/rank"
"""On a job's pod: its place among all pods of the job, from 0, as their processes are numbered."""
DEVICES_ANNOTATION: Final = "lockstep.dev/devices"
"""On a node: its devices as JSON, a list of ``lockstep.api.devices.Device``."""
NUMA_NODES_ANNOTATION: Final = "lockstep.dev/numa-nodes"
"""On a node: its NUMA nodes as JSON, a list of ``lockstep.api.devices.NumaNode``."""
RUNTIME_ANNOTATION: Final = "lockstep.dev/runtime"
"""On a pod: how long it runs on a simulated node, in seconds; absent means until deleted."""
ARRIVAL_ANNOTATION: Final = "lockstep.dev/arrival"
"""On a job that is simulated: when it arrives, in seconds after the start."""
ELAPSED_ANNOTATION: Final = "lockstep.dev/elapsed"
"""On a job in a snapshot: how long it had run, in seconds."""
CHECKPOINT_ANNOTATION: Final = "lockstep.dev/checkpoint"
"""On a TrainingJob or a Gang: when its state was last saved (RFC 3339), for those who may not write
its status; work since then is lost with its place."""
DEFRAGMENT_ANNOTATION: Final = "lockstep.dev/defragment"
"""On a waiting Gang: move others so that it fits, if no more work is lost than that: a duration of
one GPU (``8h``). Words after it are a remark; every new value is a new request."""
FAIL_RATE_ANNOTATION: Final = "lockstep.dev/fail-rate"
"""On a pod on a simulated node: chance in 0..1 that its run ends with an error."""
FAIL_ANNOTATION: Final = "lockstep.dev/fail"
"""On a running pod of a simulated node: fail now, with this exit code."""
START_DELAY_ANNOTATION: Final = "lockstep.dev/start-delay"
"""On a pod: seconds from its binding to its start on a simulated node; absent means at once."""
FAIL_NODE_ANNOTATION: Final = "lockstep.dev/fail-node"
"""On a simulated node: be dead for as long as this is there; its value says why."""

SCHEMA_ANNOTATION: Final = "lockstep.dev/schema"
"""On a CRD: which Lockstep made it and a sum of what it says, as ``0.1.0+1a2b3c4d``."""

# Labels on nodes.
HOSTNAME_LABEL: Final = "kubernetes.io/hostname"
SPINE_LABEL: Final = "spine"
LEAF_LABEL: Final = "leaf"
NODE_KIND_LABEL: Final = "lockstep.dev/node"
"""``process`` or ``simulated`` on nodes that Lockstep runs itself."""
SIMULATED_TAINT: Final = "lockstep.dev/simulated"
"""With PreferNoSchedule on simulated nodes: what could run for real prefers to."""
GPU_MODEL_LABEL: Final = "nvidia.com/gpu.product"

# Resource names.
CPU: Final = "cpu"
MEMORY: Final = "memory"
PODS: Final = "pods"
GPU: Final = "nvidia.com/gpu"
NICS: Final = "lockstep.dev/nics"
"""Whole NICs of the node, handed out by index."""
GPU_CARDS: Final = "lockstep.dev/gpu-cards"
"""On how many GPUs a pod takes a share; one when only the size of the share is stated."""
GPU_MEMORY: Final = "lockstep.dev/gpu-memory"
"""Memory that it takes of each of them, in MiB (a number below 2**20) or bytes (``16Gi``)."""
GPU_COMPUTE: Final = "lockstep.dev/gpu-compute"
"""Compute that it takes of each of them, in hundredths."""
