"""What kernels, drivers and services of a node say of faults, a row each."""

# A row is one line, to be searched for.
# ruff: noqa: E501

from __future__ import annotations

from functools import partial
from typing import Final

from lockstep.health.core.signature import Signature
from lockstep.health.core.signatures import verdicts as v

_k = partial(Signature, where="kernel")

_KERNEL: Final[tuple[Signature, ...]] = (
    _k(r"fallen off the bus", v.HARDWARE_ISOLATE(0.97), "the GPU has fallen off the bus"),
    _k(
        r"RmInitAdapter failed|rm_init_adapter failed|NVRM: .*probe routine failed",
        v.HARDWARE_ISOLATE(0.9),
        "the driver cannot start the GPU",
    ),
    _k(
        r"[Rr]ow[- ]?remap\w*[ _]fail|Remapping Failure Occurred\s*: Yes|ROW_REMAP_FAILURE|RowRemapFailure",
        v.HARDWARE_ISOLATE(0.95),
        "the GPU has no spare rows left",
    ),
    _k(
        r"[Rr]ow[- ]?remap\w*.*[Pp]ending|[Pp]ending.*[Rr]ow[- ]?remap|Remapped Rows.*Pending\s*: Yes|^\s*Pending\s*: Yes|[Pp]ending page (?:retirement|blacklist)",
        v.HARDWARE_RESET(0.85),
        "a remap of the GPU's rows waits for a reset",
    ),
    _k(
        r"GPU (?:requires|needs) (?:a )?reset|Reset required|GPU reset (?:is )?required",
        v.HARDWARE_RESET(0.85),
        "the GPU asks for a reset",
    ),
    _k(
        r"(?:[Dd]ouble[- ]bit|DBE|[Uu]ncorrectable ECC|SRAM [Uu]ncorrectable).*(?:ECC|error|count)",
        v.HARDWARE_RESET(0.85),
        "an uncorrectable memory error of the GPU",
    ),
    _k(
        r"PCIe Bus Error: severity=(?:Correct|Uncorrectable? \(Non|Uncorrected \(Non)",
        v.HARDWARE_OBSERVE(0.65),
        "a PCIe error that was survived",
    ),
    _k(
        r"EDAC .*(?:MEMORY ERROR|Machine Check Event)|mce: \[Hardware Error\]: Machine check events logged|event severity: (?:recoverable|corrected)|mce: .*[Cc]orrected error|\d corrected memory errors|\d Corrected Errors",
        v.HARDWARE_OBSERVE(0.6),
        "a machine check that was survived",
    ),
    _k(
        r"[Kk]ernel panic|BUG: unable to handle|BUG: soft lockup|kernel BUG at|divide error: |invalid opcode: 0000|unregister_netdevice: waiting|hard LOCKUP|self-detected stall|general protection fault.*\[#|Oops: ",
        v.SOFTWARE_ISOLATE(0.85),
        "the node's kernel crashed",
    ),
    _k(
        r"CPU\d+: (?:Core|Package) temperature(?:/speed)? above threshold",
        v.HARDWARE_OBSERVE(0.6),
        "a processor is throttled by heat",
    ),
    _k(
        r"thermal (?:shutdown|trip)|critical temperature reached|[Oo]ver-?temperature|HW Thermal Slowdown\s*: Active|SW Thermal Slowdown\s*: Active",
        v.HARDWARE_ISOLATE(0.8),
        "a part is too hot",
    ),
    _k(
        r"DIMM.*(?:[Ff]ail|[Dd]egraded|[Uu]ncorrectable)|[Uu]ncorrectable [Mm]emory [Ee]rror|[Mm]emory module .*[Ff]ail",
        v.HARDWARE_ISOLATE(0.88),
        "a memory module fails",
    ),
    _k(
        r"Power [Ss]upply.*(?:[Ff]ail|lost|AC lost)|PSU\d* .*(?:[Ff]ail|lost)|HW Power Brake Slowdown\s*: Active",
        v.HARDWARE_ISOLATE(0.8),
        "a power supply failed",
    ),
    _k(
        r"md/raid\S*: Disk failure on|md/raid.*(?:Cannot continue operation|read error not correctable)|mdadm.*Fail\w* event|DegradedArray|\bstate: (?:DEGRADED|FAULTED|UNAVAIL|SUSPENDED)|\bFAULTED\b.*errors|devices? (?:is|are|has|have) (?:been )?(?:faulted|experienced an unrecoverable)|super_written gets error|(?:zpool|pool) .*(?:DEGRADED|FAULTED|suspended|uncorrectable I/O)|RAID .*(?:[Dd]egraded|[Ff]ailed)|[Aa]rray .*[Dd]egraded",
        v.HARDWARE_ISOLATE(0.88),
        "a disk of a RAID array failed",
    ),
    _k(
        r"SMART.*(?:[Ff]ailure|FAILED|error)|FAILED SMART|[Cc]urrently unreadable \(pending\) sectors|[Ii]mpending failure|Self-Test Log error count increased|critical medium error|Sense Key ?: ?(?:Medium|Hardware) Error|Unrecovered read error|auto reallocate failed|rejecting I/O to (?:offline|dead) device|FAILED Result: hostbyte=DID_(?:BAD_TARGET|NO_CONNECT|ERROR|TIME_OUT|SOFT_ERROR)|(?:print_req_error|end_request|critical \w+ error).*\bdev \w+|BACK UP DATA NOW|lost page write|error to superblock|beyond end of device|(?:megaraid_sas|mpt[23]sas|hpsa|smartpqi).*(?:FAULT state|[Ff]atal|fault_state|lockup|offline)|DRDY ERR|error: \{ UNC|ata\d.*(?:failed command|exception Emask|hard resetting link)",
        v.HARDWARE_ISOLATE(0.85),
        "a disk fails",
    ),
    _k(
        r"nvme\S* ?.*(?:controller is down|[Rr]emoving after probe failure|Device not ready|Disabling device|no usable path|lack of controller|failed to (?:set|ready)|resetting controller|Abort status|I/O \d+ .*(?:QID|timeout)|critical warning|I/O Cmd.*I/O Error)|Refused to change power state",
        v.HARDWARE_ISOLATE(0.85),
        "an NVMe disk fails",
    ),
    _k(
        r"EXT4-fs (?:error|warning .*error -5)|EXT4-fs \(.*\): (?:error|I/O error)|XFS \(.*\): .*(?:[Cc]orruption|I/O [Ee]rror|[Ss]hut|log I/O)|BTRFS (?:error|critical)|JBD2: .*error|Aborting journal",
        v.HARDWARE_ISOLATE(0.85),
        "a local file system is damaged",
    ),
    _k(
        r"LustreError|Lustre: .*(?:Connection to .* was lost|evicted)|ceph: .*(?:hung|timeout|socket|laggy)|libceph: .*(?:down|socket|timeout)|CIFS: .*(?:not responded|reconnect|[Ee]rror)|mmfs.*(?:unmount|panic|Disk lease)|GPFS.*(?:unmounted|stale)|BeeGFS.*(?:[Cc]ommunication error|[Tt]imeout)|NFS: .*(?:stale|not responding)|mount\.nfs.*(?:timed out|Connection refused)|rpc\S*: .*timed out|[Ss]tale (?:NFS )?file handle",
        v.STORAGE_PAUSE(0.85),
        "a shared file system is away",
    ),
    _k(
        r"oom[-_ ]kill event|cgroup out-of-memory handler|OOM[- _]Killed|task \d+: Out Of Memory|systemd-oomd.*[Kk]illed|\bOUT_OF_MEM\w*\b|TERM_MEMLIMIT|(?:v?mem|memory) \S+ exceeded limit|killed due to memory pressure|[Ee]xceeded (?:job |step )?memory limit|memory usage .* exceeds .*limit|Killed process .*memcg",
        v.USER_STOP(0.88),
        "the job used more memory than it may",
    ),
    _k(
        r"TX timeout detected|tx_timeout[: ]|hung_queue|(?:TX|transmit) queue \d* ?timed out|async event ?: (?:local catastrophic|device fatal|port error)|fw fatal|FW fatal|Health issue observed|mlx5.*(?:tx.*timeout|wait_func.*timeout|cmd_work_handler.*failed|health.*(?:fatal|error)|core.*synd 0x)|command .* timeout.*mlx|tx hang|Tx Unit Hang|adapter reset|Adapter Reset",
        v.NETWORK_ISOLATE(0.85),
        "a network card does not answer",
    ),
    _k(
        r"mlx5_cmd_\w+:.*failed, status",
        v.SOFTWARE_OBSERVE(0.6),
        "the firmware of a network card refused a command",
    ),
    _k(
        r"amdgpu.*(?:ring \S+ timeout|GPU reset begin|GPU recovery|[Uu]ncorrectable|\bRAS\b.*error)|drm:amdgpu_job_timedout",
        v.HARDWARE_RESET(0.75),
        "a GPU hangs or has memory errors",
    ),
    _k(
        r"STEPD TERMINATED ON .* DUE TO JOB NOT ENDING|Munge decode|Invalid (?:authentication )?credential.*[Mm]unge|[Pp]rolog (?:error|failed)|Kill task failed|prolog hung",
        v.PLATFORM_ISOLATE(0.75),
        "the node's batch system cannot start or end processes",
    ),
    _k(
        r"mlx\d_load_one failed|mlx5_core.*(?:probe_one.*failed|init_one.*failed|failed to load)|bnxt_en.*(?:probe|hwrm).*fail|ice .*(?:[Ff]irmware recovery|probe.*failed)",
        v.SOFTWARE_ISOLATE(0.8),
        "a network card cannot be started",
    ),
    _k(
        r"Hardware Unit Hang|(?:NIC )?[Ll]ink is [Dd]own|changed state to down|Link down\b|link status.*\bdown\b|[Ll]ink (?:is )?(?:becomes not ready|not ready)|bond\d+: .*link status (?:definitely )?down|[Ll]ost carrier|link flap|[Pp]ort state.*(?:DOWN|Down|INIT|Polling|changed to down)|State: (?:Down|Polling)|Physical state: (?:Disabled|Polling|LinkDown|LinkErrorRecovery)|IB_EVENT_PORT_ERR|IBV_EVENT_PORT_ERR|ib\d: .*(?:down|port.*error)",
        v.NETWORK_ISOLATE(0.8),
        "a link is down",
    ),
    _k(
        r"(?:symbol_error|link_downed|link_error_recovery|port_rcv_errors|SymbolErrorCounter|LinkDownedCounter|rx_crc_errors)\W+(?:is |counter |delta )?[1-9]\d*",
        v.NETWORK_OBSERVE(0.6),
        "a link has errors",
    ),
    _k(
        r"XidCriticalError|DCGM_FR_\w+|[Mm]arking device (?:as )?unhealthy|'?nvidia\.com/gpu'? device marked unhealthy|[Dd]evice .* is unhealthy|GPU.*(?:marked|is) unhealthy",
        v.HARDWARE_ISOLATE(0.8),
        "the device plugin calls a GPU unhealthy",
    ),
)

_DRIVER: Final[tuple[Signature, ...]] = (
    Signature(
        r"system not yet initialized", v.SOFTWARE_ISOLATE(0.88), "the fabric manager does not run"
    ),
    Signature(
        r"[Ff]abric ?[Mm]anager.*(?:not running|failed|[Ee]rror|exited)|nvidia-fabricmanager.*(?:[Ff]ailed|error)",
        v.SOFTWARE_ISOLATE(0.85),
        "the fabric manager does not run",
    ),
    Signature(
        r"[Dd]river [Nn]ot [Ll]oaded|could not load NVML|[Nn]o runtime for .{0,3}nvidia|nvidia-container-runtime.*(?:no such file|not found)|unsupported display driver|peer_?mem.*not loaded|couldn't communicate with the NVIDIA driver|could not select device driver .*gpu|unresolvable CDI devices|failed to inject CDI|modprobe: .*nvidia",
        v.SOFTWARE_ISOLATE(0.85),
        "the node's driver is not loaded",
    ),
    Signature(
        r"forward compatibility was attempted|CUDA initialization: CUDA unknown error|cudaErrorSystemNotReady|cudaErrorSystemDriverMismatch",
        v.SOFTWARE_ISOLATE(0.75),
        "the node's driver does not work with the program",
    ),
    Signature(
        r"[Uu]nable to determine the device handle for|No devices were found|GPU .*(?:is )?(?:inaccessible|not (?:accessible|found on (?:the )?bus))",
        v.HARDWARE_ISOLATE(0.85),
        "a GPU cannot be reached",
    ),
    Signature(
        r"[Nn][Vv][Ll]ink.*(?:[Ii]nactive|uncorrectable|[Ff]atal|link down|CRC error)",
        v.HARDWARE_RESET(0.75),
        "an NVLink fails",
    ),
    Signature(
        r"RLIMIT_MEMLOCK|file-max limit|ibv_reg_\w+ .*Bad address|max locked memory|memlock|[Uu]nable to (?:lock|pin) memory|ulimit -l|[Cc]annot (?:lock|pin) memory|ibv_\w+(?:\(\))? .*(?:Cannot allocate memory|errno 12|errno=12)|failed to register (?:memory|MR).*(?:Cannot allocate|memlock)",
        v.PLATFORM_ISOLATE(0.85),
        "the limit of locked memory is too low",
    ),
    Signature(
        r"RETRY_EXC|CQ state error: 1[23]\b|retry (?:counter|count) exceeded|IBV_WC_RNR_RETRY|Got completion.*(?:error|status=) ?12\b|vendor err 129",
        v.NETWORK_ISOLATE(0.72),
        "the other side of an RDMA connection does not answer",
    ),
    Signature(
        r"WR_FLUSH_ERR|Work Request Flushed",
        v.NETWORK_RESTART(0.4, "cascade"),
        "RDMA work was flushed after another error",
    ),
    Signature(
        r"LOC_PROT_ERR|REM_ACCESS_ERR|remote access error|[Ll]ocal protection|async event ?: local access violation|Got completion .*(?:error|status=) ?(?:4|10|11)\b",
        v.PLATFORM_ISOLATE(0.72),
        "RDMA was refused access to memory",
    ),
    Signature(
        r"UCX +ERROR|UCX_ERROR|OFI .*(?:[Ff]ailed|error)|NET/OFI .*(?:error|WARN)|EFA .*(?:error|[Ff]ailed)|fi_\w+ failed",
        v.NETWORK_RESTART(0.6),
        "the network library failed",
    ),
)

MACHINE: Final[tuple[Signature, ...]] = (*_KERNEL, *_DRIVER)
