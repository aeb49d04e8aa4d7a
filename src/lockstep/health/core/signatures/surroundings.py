"""What programs say of what lies around them: network, peers, cluster, volumes; a row each."""

# A row is one line, to be searched for.
# ruff: noqa: E501

from __future__ import annotations

from typing import Final

from lockstep.health.core.signature import Signature
from lockstep.health.core.signatures import verdicts as v

_NETWORK: Final[tuple[Signature, ...]] = (
    Signature(
        r"Timed out waiting \d+ms for (?:recv|send)|Application timeout caused pair closure|Wait timeout|gloo.*[Tt]imeout|TimeoutException|(?:recv|send) (?:operation )?timed out",
        v.NETWORK_RESTART(0.5, "weak"),
        "a message of another rank did not come in time",
    ),
    Signature(
        r"last enqueued (?:NCCL )?work: \d+",
        v.UNKNOWN_OBSERVE(0.4, "weak"),
        "a collective did not end in time: some rank hangs or is late",
    ),
    Signature(
        r"may indicate a possible application crash on rank",
        v.UNKNOWN_RESTART(0.35, "weak"),
        "another rank ended before all had met",
    ),
    Signature(
        r"Host key verification failed|Permission denied \(publickey|ssh: Could not resolve",
        v.USER_STOP(0.88),
        "ssh between the pods is not set up",
    ),
    Signature(
        r"Errno 1(?:01|13)\b|No route to host|[Nn]etwork is unreachable|EHOSTUNREACH|ENETUNREACH|Host is (?:unreachable|down)|没有到主机的路由|网络不可达",
        v.NETWORK_RESTART(0.65, "weak"),
        "another host cannot be reached",
    ),
    Signature(
        r"Errno 11[01]\b|DistNetworkError|DistStoreError|connect\(\) timed out|[Cc]onnect timeout|async NCCL error: .*network error|Software caused connection abort|TCPStore|RendezvousConnectionError|failed to recv, got 0 bytes|Connection was likely closed|recvValue failed|[Ss]tore.*(?:[Cc]onnection (?:was )?lost|closed)|Failed to (?:recv|send)|Socket Timeout|[Ss]ocket.*timed? ?out|Connection timed out|ETIMEDOUT|[Cc]onnect(?:ion)? (?:to \S+ )?(?:refused|timed out)|ECONNREFUSED|timed out after \d+|连接超时|拒绝连接|连接被拒绝|超时",
        v.NETWORK_RESTART(0.5, "weak"),
        "the connection to another rank or to the store was lost",
    ),
    Signature(
        r"ORTE (?:has lost communication|was unable)|unable to complete a TCP connection|Zero Bytes were transmitted|orted.*(?:failed|died)|ssh: connect to host|lost connection with|heartbeat.*(?:timed? ?out|lost|missed)|missed .*heartbeats|node .*(?:marked dead|has been marked dead)|coordination service|tasks are unhealthy|Barrier timed out|HCCL.*(?:timeout|failed)|hccl api failed|EI000\d|DEADLINE_EXCEEDED|UNAVAILABLE:",
        v.NETWORK_RESTART(0.5, "weak"),
        "another host went away",
    ),
    Signature(
        r"Errno (?:32|104|108)\b|Connection (?:reset|aborted)|ECONNRESET|polling for opId|EPIPE|[Bb]roken pipe|closed by (?:remote )?peer|socketProgress|socketStartConnect|NCCL communicator was aborted|ncclCommAbort|remote process exit|Some NCCL operations have failed|taking the entire process down|断开的管道|连接被对方重[设置]",
        v.NETWORK_RESTART(0.4, "cascade"),
        "another rank went away",
    ),
)

_PLATFORM: Final[tuple[Signature, ...]] = (
    Signature(
        r"MountVolume\S* failed|[Uu]nable to attach or mount|FailedMount|FailedAttachVolume|Multi-Attach error|mount(?:\.\w+)?(?:\(\d\))?: .*(?:timed out|Connection refused|No route|unreachable|wrong fs type)|timed out waiting for the condition.*volume",
        v.STORAGE_PAUSE(0.75),
        "a volume cannot be mounted",
    ),
    Signature(
        r"DUE TO TIME LIMIT|TERM_RUNLIMIT|walltime \S+ exceeded limit|(?:^|[^= ] |[^= ])DeadlineExceeded|active longer than specified deadline",
        v.USER_STOP(0.9),
        "the job ran longer than it may",
    ),
    Signature(
        r"DUE TO (?:PREEMPTION|NODE FAILURE|JOB REQUEUE)|[Ss]pot (?:instance )?interruption|[Pp]reempted|[Pp]reempting|PreemptionByScheduler|TaintManagerEviction|NodeNotReady|Node is not ready|\bEvicted\b|evicted|DisruptionTarget|TerminationByKubelet|node .*(?:drain|shut ?down)",
        v.PLATFORM_RESTART(0.85),
        "the cluster took the pod away",
    ),
    Signature(
        r"UnexpectedAdmissionError|[Ii]nsufficient (?:nvidia|amd)\.com/gpu|Allocate failed due to|CNI .*(?:failed|error)|failed to (?:set ?up|create) .*network|cgroup.*(?:no space|not found)|ContainerStatusUnknown|PLEG is not healthy",
        v.PLATFORM_RESTART(0.75),
        "the node could not start the pod",
    ),
    Signature(
        r"Errno 5\b|Errno 30\b|Input/output error|输入/输出错误|Read-only file system|只读文件系统",
        v.STORAGE_ISOLATE(0.7),
        "a disk or a file system fails",
    ),
    Signature(
        r"文件句柄|Remote I/O error|ESTALE|Errno 1(?:07|16|21)\b|Transport endpoint|transport endpoint",
        v.STORAGE_PAUSE(0.8),
        "a shared file system is away",
    ),
    Signature(
        r"没有那个文件或目录|权限不够",
        v.USER_STOP(0.8, "weak"),
        "a file is not there, or may not be read",
    ),
    Signature(
        r": No such file or directory$|: Permission denied$",
        v.USER_STOP(0.75, "weak"),
        "a file is not there, or may not be read",
    ),
    Signature(
        r"\(signal (\d+)\)",
        v.UNKNOWN_RESTART(0.3, "weak"),
        "a rank was ended by signal {}, which its log does not explain",
    ),
)

SURROUNDINGS: Final[tuple[Signature, ...]] = tuple(
    sorted((*_NETWORK, *_PLATFORM), key=lambda one: one.verdict.kind != "")
)
