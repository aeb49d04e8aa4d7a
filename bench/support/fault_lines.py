"""Lines of real logs, with where they were shown, the class of their fault and what to do.

Names of hosts, users and addresses are left out or changed. They are split by repository: rules
are written on ``RULES`` and judged on ``JUDGED``. No repository has lines in both.
"""

# Lines are one line each, to be searched for.
# ruff: noqa: E501

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bench.support.fifth_lines import FIFTH
from bench.support.fourth_lines import FOURTH
from bench.support.judged_lines import JUDGED_GROUPS
from bench.support.later_lines import LATER
from bench.support.second_lines import SECOND
from bench.support.third_lines import THIRD


@dataclass(frozen=True, slots=True)
class Labelled:
    """What a log said, and what was the matter as its thread has it."""

    text: str
    class_: str
    action: str
    link: str

    @property
    def repository(self) -> str:
        return "/".join(self.link.split("/")[3:5])


_GROUPS: Final[tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...]] = (
    (
        "hardware",
        "isolate_node",
        (
            (
                "NVIDIA/NVSentinel/issues/155",
                "NVRM: The NVIDIA GPU 0000:b3:00.0\n NVRM: (PCI ID: 10de:26b5) installed in this system has\n NVRM: fallen off the bus and is not responding to commands.",
            ),
            (
                "NVIDIA/NVSentinel/issues/155#2",
                "NVRM: Xid (PCI:0000:44:00): 79, GPU has fallen off the bus",
            ),
            (
                "Bumblebee-Project/Bumblebee/issues/554",
                "[   49.261458] NVRM: GPU at 0000:01:00.0 has fallen off the bus.",
            ),
            (
                "wilicc/gpu-burn/issues/1",
                "[74889.644138] NVRM: Xid (PCI:0000:02:00): 79, GPU has fallen off the bus.",
            ),
            (
                "wilicc/gpu-burn/issues/1#2",
                "[74889.542031] pcieport 0000:00:02.0: AER: Uncorrected (Fatal) error received: id=0010",
            ),
            (
                "rwth-i6/returnn/issues/1500",
                "pcieport 0000:00:03.0: AER: Multiple Uncorrected (Fatal) error received: 0000:00:03.0",
            ),
            (
                "rwth-i6/returnn/issues/1500#2",
                "pcieport 0000:00:03.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Requester ID)",
            ),
            (
                "ovro-lwa/lwa-issues/issues/117",
                "[11189.970968] EDAC MC3: 1 UE memory read error on CPU_SrcID#1_MC#1_Chan#2_DIMM#0 (channel:2 slot:0 page:0xb757589)",
            ),
            (
                "leptonai/gpud/pull/338",
                "nvidia-nvswitch1: SXid (PCI:0000:84:00.0): 12028, Data {0x000001c0, 0x00bd5c8a, 0x00000500, 0x00000064}",
            ),
            (
                "NVIDIA/srt-slurm/pull/307",
                "CUDA error: uncorrectable NVLink error detected during the execution",
            ),
        ),
    ),
    (
        "hardware",
        "reset_gpu",
        (
            (
                "leptonai/gpud/pull/46",
                "[Fri Aug 30 11:43:14 2024] NVRM: Xid (PCI:0000:cb:00): 109, pid=1797828, name=pt_main_thread, Ch 00000008, errorString CTX SWITCH TIMEOUT, Info 0x58005",
            ),
            (
                "leptonai/gpud/pull/1174",
                "NVRM: Xid (PCI:0019:01:00): 149, NETIR Fatal XC0 i0 Link -1 (0x000fe406 0x00000000 0x00000000)",
            ),
            (
                "leptonai/gpud/pull/1174#2",
                "NVRM: Xid (PCI:0000:9b:00): 94, pid=1234, name=python3, Contained ECC error",
            ),
            (
                "leptonai/gpud/pull/1160",
                "NVRM: Xid (PCI:0000:00:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x026001c6 0x00000000)",
            ),
            (
                "NVIDIA/semantic-segmentation/issues/33",
                "RuntimeError: cuda runtime error (39) : uncorrectable ECC error encountered at /pytorch/aten/src/THC/THCCachingHostAllocator.cpp:265",
            ),
            (
                "nagadit/DeepFaceLab_Linux/issues/89",
                "Internal: failed call to cuDevicePrimaryCtxRetain: CUDA_ERROR_ECC_UNCORRECTABLE: uncorrectable ECC error encountered",
            ),
            (
                "ostris/ai-toolkit/issues/470",
                "CUDA error: uncorrectable ECC error encountered Search for `cudaErrorECCUncorrectable' in the documentation",
            ),
            (
                "tloen/alpaca-lora/issues/123",
                "RuntimeError: CUDA error: uncorrectable ECC error encountered",
            ),
            (
                "jade-hpc-gpu/jade-hpc-gpu.github.io/issues/194",
                "RuntimeError: CUDA error: uncorrectable ECC error encountered\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.",
            ),
            (
                "kohya-ss/sd-scripts/issues/1434",
                "[E ProcessGroupNCCL.cpp:916] [Rank 1] NCCL watchdog thread terminated with exception: CUDA error: uncorrectable ECC error encountered",
            ),
            (
                "JuliaGPU/CUDAdrv.jl/issues/106",
                "  CUDA error: uncorrectable ECC error encountered (code #214, ERROR_ECC_UNCORRECTABLE)",
            ),
        ),
    ),
    (
        "hardware",
        "observe",
        (
            (
                "pop-os/pop/issues/3363",
                "pcieport 0000:00:03.1: AER: Correctable error message received from 0000:00:00.0",
            ),
            (
                "pop-os/pop/issues/3363#2",
                "pcieport 0000:00:03.1: PCIe Bus Error: severity=Correctable, type=Data Link Layer, (Transmitter ID)",
            ),
            (
                "ellyq/coreboot/issues/4",
                "[    4.921244] pcieport 0000:00:01.0: AER: Corrected error message received from 0000:01:00.0",
            ),
            (
                "wilicc/gpu-burn/issues/1#3",
                "[74785.660366] pcieport 0000:00:02.0: AER: Corrected error received: id=0010",
            ),
            (
                "minisforum-docs/MS-02-Ultra/issues/10",
                "kernel: pcieport 0000:80:1b.4: PCIe Bus Error: severity=Uncorrectable (Non-Fatal), type=Transaction Layer, (Receiver ID)",
            ),
            (
                "qualcomm-linux/kernel/pull/1118",
                "[   36.772366][  T291] pcieport 0000:00:00.0: AER: Multiple Correctable error message received from 0000:00:00.0",
            ),
            (
                "larixer/hid-asus-dkms/issues/33",
                "pcieport 0000:00:1c.5: PCIe Bus Error: severity=Corrected, type=Physical Layer, id=00e5(Receiver ID)",
            ),
            (
                "leptonai/gpud/pull/1174#3",
                "NVRM: Xid (PCI:0018:01:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008)",
            ),
            (
                "leptonai/gpud/pull/1160#2",
                "NVRM: Xid (PCI:0000:01:00): 144, SAW_MVB Nonfatal XC0 i0 Link 0 (0x00000001 0x00000008)",
            ),
            (
                "openstreetmap/operations/issues/300",
                "kernel: [21584690.529877] EDAC MC0: 4 CE error on CPU#0Channel#2_DIMM#0 (channel:2 slot:0 page:0x0 offset:0x0)",
            ),
            (
                "openstreetmap/operations/issues/300#2",
                "kernel: [21584690.529862] mce: [Hardware Error]: Machine check events logged",
            ),
            (
                "ovro-lwa/lwa-issues/issues/117#2",
                "[11219.196558] {1}[Hardware Error]: event severity: recoverable",
            ),
        ),
    ),
    (
        "user",
        "stop_and_tell_user",
        (
            (
                "leptonai/gpud/pull/46#2",
                "NVRM: Xid (PCI:0000:cb:00): 13, pid='<unknown>', name=<unknown>, Graphics SM Warp Exception on (GPC 7, TPC 7, SM 0): Illegal Instruction Parameter",
            ),
            (
                "rshaojimmy/MADDoG/issues/11",
                "RuntimeError: CUDA out of memory. Tried to allocate 2.87 GiB (GPU 0; 14.76 GiB total capacity; 8.77 GiB already allocated; 19.75 MiB free)",
            ),
            (
                "liruilong940607/Pose2Seg/issues/32",
                "RuntimeError: CUDA out of memory. Tried to allocate 128.00 MiB (GPU 0; 4.00 GiB total capacity; 2.57 GiB already allocated)",
            ),
            (
                "MichalBusta/E2E-MLT/issues/37",
                "RuntimeError: CUDA out of memory. Tried to allocate 128.00 MiB (GPU 0; 983.69 MiB total capacity; 209.53 MiB already allocated)",
            ),
            (
                "kfzyqin/Implementation-MolGAN-PyTorch/issues/7",
                "RuntimeError: CUDA out of memory. Tried to allocate 2.00 MiB (GPU 0; 10.92 GiB total capacity; 9.98 GiB already allocated)",
            ),
            (
                "JiaweiLian/AP-PA/issues/3",
                "> RuntimeError: CUDA out of memory. Tried to allocate 2.81 GiB (GPU 0; 23.69 GiB total capacity; 16.12 GiB already allocated)",
            ),
            (
                "openpifpaf/openpifpaf/issues/265",
                "RuntimeError: CUDA out of memory. Tried to allocate 468.00 MiB (GPU 0; 15.90 GiB total capacity; 13.42 GiB already allocated)",
            ),
            (
                "yijingru/BBAVectors-Oriented-Object-Detection/issues/48",
                "RuntimeError: CUDA out of memory. Tried to allocate 182.00 MiB (GPU 0; 7.79 GiB total capacity; 6.52 GiB already allocated)",
            ),
            (
                "frostinassiky/gtad/issues/30",
                "CUDA out of memory. Tried to allocate 4.00 GiB (GPU 0; 10.73 GiB total capacity; 4.41 GiB already allocated)",
            ),
            (
                "CSAILVision/semantic-segmentation-pytorch/issues/151",
                "RuntimeError: CUDA out of memory. Tried to allocate 4.46 GiB (GPU 0; 7.93 GiB total capacity; 4.72 GiB already allocated)",
            ),
            (
                "sstzal/STAR-FC/issues/10",
                "RuntimeError: CUDA out of memory. Tried to allocate 1.36 GiB (GPU 0; 10.92 GiB total capacity;",
            ),
            (
                "facebookresearch/detectron2/issues/1563",
                "**RuntimeError: CUDA out of memory.** Tried to allocate 1.71 GiB (GPU 0; 31.72 GiB total capacity; 23.58 GiB already allocated)",
            ),
            (
                "singhsourabh/Resume-NER/issues/4",
                "RuntimeError: CUDA out of memory. Tried to allocate 92.00 MiB (GPU 0; 1.96 GiB total capacity; 1.46 GiB already allocated)",
            ),
            (
                "EleutherAI/lm-evaluation-harness/issues/2293",
                "ATen/native/cuda/Indexing.cu:1231: indexSelectSmallIndex: block: [31,0,0], thread: [29,0,0] Assertion `srcIndex < srcSelectDimSize` failed.",
            ),
            (
                "huggingface/trl/issues/1995",
                "../aten/src/ATen/native/cuda/Indexing.cu:1284: indexSelectLargeIndex: block: [134,0,0], thread: [0,0,0] Assertion `srcIndex < srcSelectDimSize` failed.",
            ),
            (
                "saahiluppal/catr/issues/19",
                "RuntimeError: CUDA error: device-side assert triggered",
            ),
            (
                "NVIDIA/flowtron/issues/52",
                "work/aten/src/THC/THCTensorIndex.cu:218: block: [0,0,0], thread: [106,0,0] Assertion `srcIndex < srcSelectDimSize` failed.",
            ),
            (
                "JasonObeid/Chart2Text/issues/1",
                "/pytorch/aten/src/ATen/native/cuda/Indexing.cu:658: indexSelectLargeIndex: block: [63,0,0], thread: [56,0,0] Assertion `srcIndex < srcSelectDimSize` failed.",
            ),
            (
                "hoon9405/GenHPF/issues/17",
                "/pytorch/aten/src/ATen/native/cuda/Indexing.cu:1422: indexSelectLargeIndex: block: [31,0,0], thread: [16,0,0] Assertion `srcIndex < srcSelectDimSize`",
            ),
            (
                "bharat-b7/IPNet/issues/4",
                "THCTensorIndex.cu:361: void indexSelectLargeIndex(TensorInfo<T, IndexType>): block: [72,0,0], thread: [47,0,0] Assertion `srcIndex < srcSelectDimSize` failed.",
            ),
            (
                "NVIDIA/nccl-tests/issues/166",
                "misc/shmutils.cc:71 NCCL WARN Error: failed to extend /dev/shm/nccl-fjwOOB to 5967876 bytes",
            ),
            (
                "NVIDIA/nccl-tests/issues/166#2",
                "misc/shmutils.cc:112 NCCL WARN Error while creating shared memory segment /dev/shm/nccl-KWfVyt (size 5967872)",
            ),
            (
                "pytorch/ci-infra/pull/490",
                "misc/shmutils.cc:88 NCCL WARN Error: failed to extend /dev/shm/nccl-WU88OE to 9637892 bytes, error: No space left on device (28)",
            ),
            (
                "NVIDIA/nccl/issues/290",
                "include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device",
            ),
            (
                "NVIDIA/nccl/issues/525",
                "[3] include/shm.h:48 NCCL WARN Error while creating shared memory segment nccl-shm-recv-1462445a6f01cbfc-1-2-3 (size 9637888)",
            ),
            (
                "pytorch/pytorch/pull/40622",
                "include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device\n include/shm.h:48 NCCL WARN Error while creating shared memory segment nccl-shm-recv-54c7cb5318ccdf40-1-0-1 (size 9637888)",
            ),
            (
                "deepseek-ai/DeepEP/issues/53",
                "misc/shmutils.cc:87 NCCL WARN Error: failed to extend /dev/shm/nccl-nyj24T to 10486116 bytes, error: No space left on device (28)",
            ),
            (
                "reportportal/kubernetes/issues/203",
                "[ 7063.247407] Memory cgroup out of memory: Killed process 63214 (uwsgi) total-vm:3149468kB, anon-rss:164992kB, file-rss:52176kB",
            ),
            (
                "docker/for-linux/issues/1001",
                "kernel: [  514.682838] Memory cgroup out of memory: Killed process 15617 (python3) total-vm:11892kB, anon-rss:4292kB",
            ),
            (
                "ArjunaCluster/ArjunaUsers/issues/52",
                "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=191.batch cgroup. Some of your processes may have been killed by the cgroup out-of-memory handler.",
            ),
            (
                "RLinf/RLinf/issues/655",
                "ValueError: Size mismatch between saved torch.Size([257152, 2048]) and current: torch.Size([131661824]) for embed_tokens.weight",
            ),
        ),
    ),
    (
        "platform",
        "isolate_node",
        (
            (
                "pcyin/tranX/issues/41",
                "[2059991.491542] Out of memory: Killed process 25315 (python3) total-vm:53312244kB, anon-rss:31451456kB, file-rss:74816kB",
            ),
            (
                "equinor/ert/issues/7797",
                "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task=perl,pid=1440763",
            ),
            (
                "0jc1/py-autovod/issues/7",
                "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/init.scope,task=python,pid=7899,uid=0",
            ),
        ),
    ),
    (
        "network",
        "isolate_node",
        (
            (
                "NVIDIA/nccl/issues/1405",
                "ib_plugin.c:1615 NCCL WARN NET/IB : Got completion from peer 10.0.0.2<54862> with status=12 opcode=0 len=0 vendor err 129 (Recv)",
            ),
            (
                "NVIDIA/nccl/issues/1814",
                "NCCL WARN NET/IB : Got completion from peer 10.0.0.3<55921> with status=12 opcode=1 len=0 vendor err 129 (Send)",
            ),
            (
                "NVIDIA/nccl/issues/426",
                "NCCL WARN NET/IB : Got completion with error 12, opcode 0, len 0, vendor err 129",
            ),
            (
                "NVIDIA/nccl/issues/1664",
                "NET/IBP:Got completion from peer 10.0.0.4<36315> with status=12 opcode=32698 len=32696 vendor err 129 (Send)",
            ),
            ("NVIDIA/nccl/issues/1170", "NCCL WARN NET/IB Got completion error 12"),
            ("NVIDIA/NVSentinel/issues/1334", "mlx5_core 0000:1a:00.0 ens1: TX timeout detected"),
            ("heidsoft/devops/issues/67", "kernel: mlx5_core TX timeout detected"),
        ),
    ),
    (
        "software",
        "restart_in_place",
        (
            (
                "THU-BPM/RAPL/issues/2",
                "PytorchStreamReader failed reading zip archive: failed finding central directory",
            ),
            (
                "guoweiyu/Context-Enhanced-Stereo-Transformer/issues/1",
                "RuntimeError: [enforce fail at inline_container.cc:145] . PytorchStreamReader failed reading zip archive: failed finding central directory",
            ),
            (
                "open-mmlab/mmagic/issues/876",
                "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory",
            ),
            (
                "quanlin-wu/dmae/issues/9",
                "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory",
            ),
            (
                "sml2h3/dddd_trainer/issues/36",
                "`RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory`",
            ),
            (
                "open-mmlab/mmdetection/issues/4835",
                "RuntimeError: [enforce fail at inline_container.cc:144] . PytorchStreamReader failed reading zip archive: failed finding central directory",
            ),
        ),
    ),
    (
        "software",
        "isolate_node",
        (
            (
                "Oneflow-Inc/oneflow/issues/3106",
                "Failed to initialize NVML: Driver/library version mismatch",
            ),
            (
                "madgraph5/madgraph4gpu/issues/996",
                "Failed to initialize NVML: Driver/library version mismatch",
            ),
            (
                "pytorch/pytorch/issues/35710",
                "RuntimeError: cuda runtime error (802) : system not yet initialized at /work/aten/src/THC/THCGeneral.cpp:50",
            ),
            (
                "wilicc/gpu-burn/issues/92",
                "  what():  Error (gpu_burn-drv.cpp:298): system not yet initialized",
            ),
            ("gpustack/gpustack/issues/4154", "Error 802: system not yet initialized"),
            (
                "gpustack/gpustack/issues/1254",
                "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 804: forward compatibility was attempted on non supported HW",
            ),
            (
                "PeterSuh-Q3/tinycore-redpill/issues/9",
                "[   14.059052] mlx5_core 0000:03:00.0: mlx5_load_one failed with error code -22",
            ),
        ),
    ),
    (
        "storage",
        "pause_job",
        (
            ("Nexenta/edgefs/issues/293", "ls: cannot access /mnt/dataset/: Stale file handle"),
            ("willscott/go-nfs/issues/104", "ls: boot/initrd.img: Stale NFS file handle"),
            ("home-assistant/supervisor/issues/4985", "mount.nfs: Stale file handle"),
        ),
    ),
    (
        "unknown",
        "observe",
        (
            (
                "NVIDIA/open-gpu-kernel-modules/issues/1150",
                "kernel: NVRM: Xid (PCI:0000:dc:00): 45, pid=1818990, name=python3, Ch 00000001 caused by previous Xid 149",
            ),
            (
                "NVIDIA/Megatron-LM/issues/1207",
                "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600013 milliseconds before timing out.",
            ),
            (
                "hiyouga/LlamaFactory/issues/7396",
                "[rank0]:[E321 02:07:08.408271257 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1580, OpType=ALLREDUCE, NumelIn=466119168)",
            ),
            (
                "hiyouga/LlamaFactory/issues/6269",
                "[rank0]:[E1206 18:44:12.715298746 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7753, OpType=_REDUCE_SCATTER_BASE)",
            ),
            (
                "XPixelGroup/BasicSR/issues/737",
                "[rank1]:[E626 06:24:44.903881913 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=808, OpType=ALLREDUCE)",
            ),
            (
                "OFA-Sys/OFA/issues/271",
                "[E ProcessGroupNCCL.cpp:737] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=469508, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1802212 milliseconds before timing out.",
            ),
            (
                "pytorch/pytorch/issues/118369",
                "[E ProcessGroupNCCL.cpp:458] [Rank 7] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=64088, OpType=ALLREDUCE, Timeout(ms)=1800000)",
            ),
            (
                "sgl-project/sglang/issues/1693",
                "[rank1]:[E1016 03:31:38.928019586 ProcessGroupNCCL.cpp:607] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9141, OpType=_ALLGATHER_BASE)",
            ),
            (
                "NVIDIA/nccl/issues/1409",
                "[rank7]:[E816 01:45:40.184373931 ProcessGroupNCCL.cpp:1664] [PG 0 (default_pg) Rank 7] Exception (either an error or timeout) detected by watchdog at work: 80078, last enqueued NCCL work: 80078, last completed NCCL work: 80077.",
            ),
        ),
    ),
)

_SITE: Final = "https://github.com/"
RULES: Final = (
    *(
        Labelled(text, class_, action, _SITE + link)
        for class_, action, some in _GROUPS
        for link, text in some
    ),
    *(
        Labelled(text, class_, action, _SITE + link)
        for class_, action, _, some in (*LATER, *SECOND, *THIRD, *FOURTH, *FIFTH)
        for link, text in some
    ),
)
JUDGED: Final = tuple(
    Labelled(text, class_, action, _SITE + link)
    for class_, action, _, some in JUDGED_GROUPS
    for link, text in some
)
