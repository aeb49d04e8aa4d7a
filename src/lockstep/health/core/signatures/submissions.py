"""What batch systems, API servers and command lines say of a job that they refuse; a row each."""

# A row is one line, to be searched for.
# ruff: noqa: E501

from __future__ import annotations

from typing import Final

from lockstep.health.core.signature import Signature
from lockstep.health.core.signatures import verdicts as v

SUBMISSIONS: Final[tuple[Signature, ...]] = (
    Signature(
        r"[Uu]nable to contact slurm controller|slurm_load_\w+ error|slurmctld.*not responding|[Nn]odes? \S+ not responding|The connection to the server \S+ was refused|etcdserver: |Unable to connect to the server|the server was unable to return a response in the time allotted",
        v.PLATFORM_RESTART(0.8),
        "the cluster's control plane does not answer",
    ),
    Signature(
        r"slurmd(?:\[\d+\])?: .*(?:spank|prolog|epilog|[Uu]nable to register|error: .*(?:[Pp]ermission denied|cgroup|credential))|pyxis: .*(?:mkdir|[Pp]ermission denied|failed to (?:mount|create))|KernelDeadlock|container runtime (?:is down|network not ready)",
        v.PLATFORM_ISOLATE(0.75),
        "the node's agent fails, and so do all jobs there",
    ),
    Signature(
        r"TERMINATE_ON_HOST_MAINTENANCE|[Hh]ost maintenance|maintenance event",
        v.PLATFORM_RESTART(0.8),
        "the cloud takes the machine for maintenance",
    ),
    Signature(
        r"(?:sbatch|salloc|srun): (?:error|fatal): .*(?:[Ii]nvalid|not valid|[Rr]equested|without specifying|must (?:be|specify)|[Uu]nable to open|not permitted|than permitted|[Vv]iolates|not (?:supported|allowed|available)|ERROR: )|(?:QOS|Assoc)(?:Max|Grp)\w+|(?:sbatch|salloc|srun): (?:un|in)\w+ option|slurm_job_submit|More processors requested",
        v.USER_STOP(0.88),
        "the batch system refuses what the job asks for: correct its partition, account or resources",
    ),
    Signature(
        r'(?i)\b(?:secret|configmap|config map|persistentvolumeclaim|serviceaccount|priorityclass|namespaces?|runtimeclass)s? "[^"]+" (?:is )?(?:not found|forbidden)|\bis forbidden: User|exceeded quota: |You must be logged in to the server',
        v.USER_STOP(0.85, "static"),
        "an object that the pod names is not there, or its account may not use it",
    ),
    Signature(
        r"could not read (?:Username|Password) for|[Rr]epository not found\.|fatal: Authentication failed",
        v.USER_STOP(0.85, "static"),
        "git may not read the repository: give the pod a key",
    ),
    Signature(
        r"unable to find the specified executable|could not find (?:the )?executable|execve\(\): .*(?:No such file|Permission denied)|failed to get the Python codec",
        v.USER_STOP(0.88, "static"),
        "the program is not in the image, or cannot be run",
    ),
    Signature(
        r"OOM[- _]?[Kk]ill|oom[- _]killed|memory limit too low|(?:exceed\w*|over) (?:the |its |job )*(?:request\w* |container |step )*memory(?: limit)?|memory (?:usage )?exceed\w* (?:the )?limit|exceeding its memory limit",
        v.USER_STOP(0.88),
        "the container used more memory than its limit",
    ),
    Signature(
        r"FailedCreatePodSandBox|[Ff]ailed to create (?:pod )?sandbox|failed to create (?:containerd task|shim task): context deadline|nvidia-container-cli: device error",
        v.PLATFORM_RESTART(0.75),
        "the node could not start the pod",
    ),
    Signature(
        r"PytorchStreamWriter failed|unexpected pos \d+ vs \d+|basic_ios::clear: iostream error|when calling the (?:Put|Upload|CompleteMultipart|CreateMultipart)\w* operation.*(?:max retries|InternalError|SlowDown)",
        v.STORAGE_PAUSE(0.75),
        "a file could not be written whole: the store is full, over quota or away",
    ),
    Signature(
        r"NVIDIA Corporation .*\(rev ff\)|[Dd]evice wedged|GPU unplugged|panic - not syncing: (?:Fatal [Mm]achine [Cc]heck|.*MCE)|DCGM.*(?:[Dd]iagnostic|test).*(?:[Ff]ail)|GPU is probably locked",
        v.HARDWARE_ISOLATE(0.88),
        "a device of the node does not answer any more",
    ),
    Signature(
        r"[Tt]emperature (?:is )?above threshold|clock (?:is )?throttled",
        v.HARDWARE_OBSERVE(0.7, "weak"),
        "a processor is too hot and runs slower",
    ),
    Signature(
        r"sys files not found \(/sys/class/infiniband|no IB device found|/dev/infiniband/\S+: (?:No such|cannot)|unable to modify QP",
        v.SOFTWARE_ISOLATE(0.7),
        "the node's RDMA devices are not there, or their driver is not loaded",
    ),
)
