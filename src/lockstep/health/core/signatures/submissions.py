"""What batch systems, API servers and command lines say of a job that they refuse; a row each."""

# A row is one line, to be searched for.
# ruff: noqa: E501

from __future__ import annotations

from typing import Final

from lockstep.health.core.signature import Signature
from lockstep.health.core.signatures.runtime import Row, of_row

_SLURM: Final = "https://slurm.schedmd.com/sbatch.html"
_KUBERNETES: Final = "https://kubernetes.io/docs/tasks/debug/"
_GIT: Final = "https://git-scm.com/docs/gitcredentials"
_MPI: Final = "https://docs.open-mpi.org/en/v5.0.x/launching-apps/"
_PCI: Final = "https://man7.org/linux/man-pages/man8/lspci.8.html"
_NPD: Final = "https://github.com/kubernetes/node-problem-detector"
_CLOUD: Final = "https://cloud.google.com/compute/docs/instances/host-maintenance-overview"

_ROWS: Final[tuple[Row, ...]] = (
    (
        r"[Uu]nable to contact slurm controller|slurm_load_\w+ error|slurmctld.*not responding|[Nn]odes? \S+ not responding|The connection to the server \S+ was refused|etcdserver: |Unable to connect to the server|the server was unable to return a response in the time allotted",
        "platform",
        "restart_in_place",
        0.8,
        "the cluster's control plane does not answer",
        "srun: error: Unable to contact slurm controller (connect failure)",
        _SLURM,
        "",
    ),
    (
        r"slurmd(?:\[\d+\])?: .*(?:spank|prolog|epilog|[Uu]nable to register|error: .*(?:[Pp]ermission denied|cgroup|credential))|pyxis: .*(?:mkdir|[Pp]ermission denied|failed to (?:mount|create))|KernelDeadlock|container runtime (?:is down|network not ready)",
        "platform",
        "isolate_node",
        0.75,
        "the node's agent fails, and so do all jobs there",
        "slurmd[13562]: spank-epilog: error: pyxis: mkdir: cannot create directory '/run/data': Permission denied",
        _NPD,
        "",
    ),
    (
        r"TERMINATE_ON_HOST_MAINTENANCE|[Hh]ost maintenance|maintenance event",
        "platform",
        "restart_in_place",
        0.8,
        "the cloud takes the machine for maintenance",
        "Instance is scheduled for host maintenance TERMINATE_ON_HOST_MAINTENANCE",
        _CLOUD,
        "",
    ),
    (
        r"(?:sbatch|salloc|srun): (?:error|fatal): .*(?:[Ii]nvalid|not valid|[Rr]equested|without specifying|must (?:be|specify)|[Uu]nable to open|not permitted|than permitted|[Vv]iolates|not (?:supported|allowed|available)|ERROR: )|(?:QOS|Assoc)(?:Max|Grp)\w+|(?:sbatch|salloc|srun): (?:un|in)\w+ option|slurm_job_submit|More processors requested",
        "user",
        "stop_and_tell_user",
        0.88,
        "the batch system refuses what the job asks for: correct its partition, account or resources",
        "sbatch: error: Batch job submission failed: Invalid partition name specified",
        _SLURM,
        "",
    ),
    (
        r'(?i)\b(?:secret|configmap|config map|persistentvolumeclaim|serviceaccount|priorityclass|namespaces?|runtimeclass)s? "[^"]+" (?:is )?(?:not found|forbidden)|\bis forbidden: User|exceeded quota: |You must be logged in to the server',
        "user",
        "stop_and_tell_user",
        0.85,
        "an object that the pod names is not there, or its account may not use it",
        'MountVolume.SetUp failed for volume "keys": secret "s3-keys" not found',
        _KUBERNETES,
        "static",
    ),
    (
        r"could not read (?:Username|Password) for|[Rr]epository not found\.|fatal: Authentication failed",
        "user",
        "stop_and_tell_user",
        0.85,
        "git may not read the repository: give the pod a key",
        "fatal: could not read Username for 'https://example.com': terminal prompts disabled",
        _GIT,
        "static",
    ),
    (
        r"unable to find the specified executable|could not find (?:the )?executable|execve\(\): .*(?:No such file|Permission denied)|failed to get the Python codec",
        "user",
        "stop_and_tell_user",
        0.88,
        "the program is not in the image, or cannot be run",
        "mpirun was unable to find the specified executable file, and therefore did not launch the job",
        _MPI,
        "static",
    ),
    (
        r"OOM[- _]?[Kk]ill|oom[- _]killed|memory limit too low|(?:exceed\w*|over) (?:the |its |job )*(?:request\w* |container |step )*memory(?: limit)?|memory (?:usage )?exceed\w* (?:the )?limit|exceeding its memory limit",
        "user",
        "stop_and_tell_user",
        0.88,
        "the container used more memory than its limit",
        "Exit reason: container killed, it exceeded the requested memory",
        _KUBERNETES,
        "",
    ),
    (
        r"FailedCreatePodSandBox|[Ff]ailed to create (?:pod )?sandbox|failed to create (?:containerd task|shim task): context deadline|nvidia-container-cli: device error",
        "platform",
        "restart_in_place",
        0.75,
        "the node could not start the pod",
        "FailedCreatePodSandBox: rpc error: code = DeadlineExceeded desc = context deadline exceeded",
        _KUBERNETES,
        "",
    ),
    (
        r"PytorchStreamWriter failed|unexpected pos \d+ vs \d+|basic_ios::clear: iostream error|when calling the (?:Put|Upload|CompleteMultipart|CreateMultipart)\w* operation.*(?:max retries|InternalError|SlowDown)",
        "storage",
        "pause_job",
        0.75,
        "a file could not be written whole: the store is full, over quota or away",
        "RuntimeError: PytorchStreamWriter failed writing file data/9: file write failed",
        "https://github.com/pytorch/pytorch/issues",
        "",
    ),
    (
        r"NVIDIA Corporation .*\(rev ff\)|[Dd]evice wedged|GPU unplugged|panic - not syncing: (?:Fatal [Mm]achine [Cc]heck|.*MCE)|DCGM.*(?:[Dd]iagnostic|test).*(?:[Ff]ail)|GPU is probably locked",
        "hardware",
        "isolate_node",
        0.88,
        "a device of the node does not answer any more",
        "1c:00.0 3D controller: NVIDIA Corporation GA100 [A100 SXM4 80GB] (rev ff)",
        _PCI,
        "",
    ),
    (
        r"[Tt]emperature (?:is )?above threshold|clock (?:is )?throttled",
        "hardware",
        "observe",
        0.7,
        "a processor is too hot and runs slower",
        "mce: CPU12: Core temperature is above threshold, cpu clock is throttled",
        "https://www.kernel.org/doc/html/latest/admin-guide/thermal/",
        "weak",
    ),
    (
        r"sys files not found \(/sys/class/infiniband|no IB device found|/dev/infiniband/\S+: (?:No such|cannot)|unable to modify QP",
        "software",
        "isolate_node",
        0.7,
        "the node's RDMA devices are not there, or their driver is not loaded",
        "Fatal error: device 'mlx5_0': sys files not found (/sys/class/infiniband/mlx5_0/ports)",
        "https://github.com/linux-rdma/rdma-core",
        "",
    ),
)

SUBMISSIONS: Final[tuple[Signature, ...]] = tuple(of_row(row) for row in _ROWS)
