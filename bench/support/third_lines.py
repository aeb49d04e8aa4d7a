"""Lines that judged class 85.5 %, action 82.3 % of 62 before rules were mended for them."""

# Lines are one line each, to be searched for.
# ruff: noqa: E501, S108

from __future__ import annotations

from typing import Final

from bench.support.later_lines import Group

THIRD: Final[tuple[Group, ...]] = (
    (
        "hardware",
        "isolate_node",
        "a disk fails",
        (
            (
                "gardenlinux/gardenlinux/issues/263",
                "EXT4-fs error (device nvme19n1): ext4_wait_block_bitmap:517: comm etcd: Cannot read block bitmap - block_group = 34, block_bitmap = 1048578",
            ),
            (
                "gardenlinux/gardenlinux/issues/263#2",
                "EXT4-fs warning (device nvme19n1): htree_dirblock_to_tree:997: inode #1048579: lblock 0: comm etcd: error -5 reading directory block",
            ),
            (
                "oxidecomputer/crucible/issues/1844",
                "[ 4700.636735] nvme0n1: I/O Cmd(0x2) @ LBA 131209936, 200 blocks, I/O Error (sct 0x3 / sc 0x71)",
            ),
            (
                "oxidecomputer/crucible/issues/1844#2",
                "[ 4730.855458] Aborting journal on device nvme0n1p1-8.",
            ),
            (
                "Joshua-Riek/ubuntu-rockchip/issues/970",
                "[  279.665900] JBD2: I/O error when updating journal superblock for nvme0n1p1-8.",
            ),
        ),
    ),
    (
        "storage",
        "pause_job",
        "a network volume was away",
        (
            (
                "longhorn/longhorn/issues/2775",
                "Jul  6 14:46:14 adjucator kernel: [23809.072365] sd 6:0:0:1: rejecting I/O to offline device",
            ),
        ),
    ),
    (
        "network",
        "restart_in_place",
        "another rank went away",
        (
            (
                "RVC-Project/Retrieval-based-Voice-Conversion-WebUI/issues/1882",
                "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:10895",
            ),
            (
                "RVC-Project/Retrieval-based-Voice-Conversion-WebUI/issues/1882#2",
                "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:589] Read error [192.168.70.92]:25266: Connection reset by peer",
            ),
            (
                "IAHispano/Applio/issues/126",
                "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer",
            ),
        ),
    ),
    (
        "storage",
        "isolate_node",
        "a disk or a file system fails",
        (
            (
                "whwu95/Text4Vis/issues/6",
                "OSError: [Errno 5] Input/output error: '/opt/data/private/dataset/k400_frame/train/auctioning/97nosiYXJm8_000087_000097'",
            ),
            (
                "MIC-DKFZ/nnUNet/issues/1784",
                "OSError: [Errno 5] Input/output error: '/media/project/nnUNet/nnUNet_preprocessed/L0550_RCA_sagital.pkl'",
            ),
            ("EdinburghNLP/nematus/issues/8", "IOError: [Errno 5] Input/output error"),
        ),
    ),
    (
        "storage",
        "pause_job",
        "a shared file system fails",
        (
            (
                "THUDM/slime/issues/326",
                "ERROR: megatron.core.dist_checkpointing.strategies.filesystem_async: Local process 0 encountered an error: [Errno 5] Input/output error",
            ),
        ),
    ),
    (
        "storage",
        "pause_job",
        "a mounted drive fails",
        (("dansuh17/segan-pytorch/issues/19", "OSError: [Errno 5] Input/output error"),),
    ),
    (
        "network",
        "isolate_node",
        "the other side of an RDMA connection does not answer",
        (
            (
                "rapidsai/ucx-py/issues/449",
                "[prm-dgx-23:16433:1:16433] ib_mlx5_log.c:139  Transport retry count exceeded on mlx5_0:1/IB (synd 0x15 vend 0x81 hw_synd 0/0)",
            ),
            (
                "uccl-project/uccl/issues/293",
                "F20250821 13:22:09.976752 3186121 rdma_io.cc:811] Check failed: wc->status == IBV_WC_SUCCESS RC send CQ state error: 12, 0",
            ),
        ),
    ),
    (
        "platform",
        "isolate_node",
        "RDMA was refused access to memory",
        (("kvcache-ai/Mooncake/issues/284", "local protection error"),),
    ),
    (
        "user",
        "stop_and_tell_user",
        "/dev/shm is too small",
        (
            (
                "hkchengrex/STCN/issues/132",
                "RuntimeError: DataLoader worker (pid 46794) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory. Please try to raise your shared memory limit.",
            ),
            (
                "bytedance/Protenix/issues/2",
                "RuntimeError: DataLoader worker (pid 572) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory. Please try to raise your shared memory limit.",
            ),
            (
                "fastai/docker-containers/issues/21",
                "RuntimeError: DataLoader worker (pid 47) is killed by signal: Bus error",
            ),
        ),
    ),
    (
        "platform",
        "restart_in_place",
        "the cluster took the job away",
        (
            (
                "SystemsGenetics/GEMmaker/pull/242",
                "slurmstepd: error: *** JOB 32391783 ON cn119 CANCELLED AT 2021-06-18T13:05:36 DUE TO PREEMPTION ***",
            ),
            (
                "cBio/cbio-cluster/issues/188",
                "Message[1] job cancelled - job preempted (node failure)",
            ),
            (
                "facebookincubator/submitit/issues/1708",
                "slurmstepd: error: *** JOB 608 ON n1 CANCELLED AT 2022-08-12T02:06:12 DUE TO JOB REQUEUE ***",
            ),
            (
                "facebookincubator/submitit/issues/1708#2",
                "submitit WARNING (2022-08-12 02:06:11,453) - Caught signal SIGUSR2 on n1: this job is preempted.",
            ),
        ),
    ),
    (
        "software",
        "restart_in_place",
        "the container lost its access to the GPUs",
        (("Project-HAMi/HAMi/issues/1520", "Failed to initialize NVML: Unknown Error"),),
    ),
    (
        "software",
        "isolate_node",
        "the node's runtime is not set up for GPUs",
        (
            (
                "kubernetes/minikube/issues/6912",
                "2020/05/26 14:26:03 Failed to initialize NVML: could not load NVML library.",
            ),
        ),
    ),
    (
        "software",
        "isolate_node",
        "the driver is not loaded",
        (
            (
                "NVIDIA/nvidia-container-toolkit/issues/1269",
                "nvidia-container-cli: initialization error: nvml error: driver not loaded",
            ),
            (
                "cedricxie/apollo_perception_ros/issues/20",
                "docker: Error response from daemon: OCI runtime create failed: container_linux.go:380: starting container process caused: process_linux.go:545: container init caused: Running hook #0:: error running hook: exit status 1, stdout: , stderr: nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown.",
            ),
        ),
    ),
    (
        "unknown",
        "observe",
        "a collective did not end in time",
        (
            (
                "agiresearch/InstructGLM/issues/3",
                "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=49, OpType=ALLREDUCE, Timeout(ms)=18000000) ran for 18005607 milliseconds before timing out.",
            ),
            (
                "instructlab/training/pull/520",
                "terminate called after throwing an instance of 'c10::DistBackendError'\n  what():  [PG ID 0 PG GUID 0(default_pg) Rank 3] Process group watchdog thread terminated with exception: [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1) ran for 90 milliseconds before timing out.",
            ),
            (
                "Ascend/pytorch/issues/48",
                "EE1002: 2024-09-03-16:50:00.041.231 Stream synchronize timeout. rtDeviceSynchronize execute failed, reason=[stream sync timeout]",
            ),
        ),
    ),
    (
        "user",
        "stop_and_tell_user",
        "ranks call different collectives",
        (
            (
                "modelscope/FunASR/issues/2317",
                "[rank0]:[E ProcessGroupNCCL.cpp:563] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3437, OpType=ALLREDUCE, NumelIn=4311252, NumelOut=4311252, Timeout(ms)=600000) ran for 600057 milliseconds before timing out.\n[rank1]:[E ProcessGroupNCCL.cpp:563] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3437, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600076 milliseconds before timing out.",
            ),
        ),
    ),
    (
        "user",
        "stop_and_tell_user",
        "the checkpoint is not of this model",
        (
            (
                "ACEsuit/mace/issues/773",
                "RuntimeError: Error(s) in loading state_dict for ScaleShiftMACE:\n        size mismatch for atomic_numbers: copying a param with shape torch.Size([13]) from checkpoint, the shape in current model is torch.Size([1]).",
            ),
            (
                "CoinCheung/BiSeNet/issues/318",
                "RuntimeError: Error(s) in loading state_dict for BiSeNetV1:",
            ),
            (
                "lukas-blecher/LaTeX-OCR/issues/55",
                "size mismatch for head.fc.bias: copying a param with shape torch.Size([21]) from checkpoint, the shape in current model is torch.Size([22])",
            ),
        ),
    ),
    (
        "user",
        "stop_and_tell_user",
        "tensors do not fit together",
        (
            (
                "bamos/densenet.pytorch/issues/19",
                "RuntimeError: size mismatch, m1: [2394 x 7], m2: [16758 x 2] at TH/generic/THTensorMath.cpp:2070",
            ),
        ),
    ),
    (
        "unknown",
        "observe",
        "only what follows from another fault",
        (
            (
                "MCG-NJU/MeMOTR/issues/1",
                "torch.distributed.elastic.multiprocessing.errors.childFailedError: main.py FAILED",
            ),
            (
                "Vision-CAIR/MiniGPT-4/issues/237",
                "Root Cause (first observed failure):\n[0]:\n  time      : 2023-05-19_16:39:58\n  rank      : 0 (local_rank: 0)\n  exitcode  : 1 (pid: 78970)\n  error_file: <N/A>",
            ),
            (
                "Facico/Chinese-Vicuna/issues/113",
                "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 0 (pid: 1622990) of binary: /home/u/bin/python",
            ),
            (
                "cszn/KAIR/issues/165",
                "main_train_vrt.py FAILED\n  rank      : 1 (local_rank: 1)\n  exitcode  : 2 (pid: 10451)\n  error_file: <N/A>",
            ),
        ),
    ),
    (
        "platform",
        "restart_in_place",
        "a name cannot be resolved",
        (
            (
                "caicloud/ciao/issues/85",
                "[kubeflow][master-0] socket.gaierror: [Errno -3] Temporary failure in name resolution",
            ),
            (
                "nyu-systems/Grendel-GS/issues/9",
                "[W socket.cpp:601] [c10d] The IPv6 network addresses of (user, 53821) cannot be retrieved (gai error: -3 - Temporary failure in name resolution).",
            ),
            (
                "meta-pytorch/monarch/pull/1571",
                "[W1008 23:40:22.836678340 socket.cpp:767] [c10d] The client socket has failed to connect to [job-1.internal]:50745 (errno: 22 - Invalid argument).\n[W1008 23:40:22.781961348 socket.cpp:767] [c10d] The IPv6 network addresses of (job-1.internal, 50745) cannot be retrieved (gai error: -2 - Name or service not known).",
            ),
            (
                "meta-pytorch/torchx/issues/540",
                "[0]:[W socket.cpp:558] [c10d] The IPv4 network addresses of (head-1, 50176) cannot be retrieved (gai error: -2 - Name or service not known).\n[0]:[E socket.cpp:610] [c10d] The client socket has failed to connect to any network address of (head-1, 50176).",
            ),
        ),
    ),
    (
        "network",
        "restart_in_place",
        "the meeting point cannot be reached",
        (
            (
                "pytorch/PiPPy/pull/159",
                "[W socket.cpp:558] [c10d] The client socket has failed to connect to [localhost]:29500 (errno: 99 - Cannot assign requested address).",
            ),
        ),
    ),
    (
        "software",
        "restart_in_place",
        "a port is taken",
        (
            ("thu-coai/CDial-GPT/issues/103", "RuntimeError: Address already in use"),
            (
                "deepinsight/insightface/issues/1657",
                "store = TCPStore(master_addr, master_port, world_size, start_daemon, timeout)\nRuntimeError: Address already in use",
            ),
            (
                "meta-pytorch/torchtune/issues/392",
                "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).",
            ),
            (
                "THUDM/Chinese-Transformer-XL/issues/5",
                "RuntimeError: Address already in use\nERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 0 (pid: 24171) of binary: /home/u/bin/python",
            ),
        ),
    ),
    (
        "network",
        "isolate_node",
        "a network card is stuck",
        (
            (
                "openbmc/openbmc/issues/3192",
                "[   90.100358] NETDEV WATCHDOG: eth0 (ftgmac100): transmit queue 0 timed out",
            ),
            (
                "geerlingguy/raspberry-pi-pcie-devices/issues/21",
                "[   43.997620] NETDEV WATCHDOG: eth1 (mlx4_core): transmit queue 0 timed out",
            ),
            (
                "csrutil/OpenWrt-NIC-Drivers/issues/11",
                "[ 1356.296930] r8125 0000:22:04.0 eth4: NETDEV WATCHDOG: CPU: 3: transmit queue 0 timed out 5010 ms",
            ),
            (
                "open-power/op-build/issues/3274",
                "tx_timeout: VSI_seid: 396, Q 31, NTC: 0x1cb, HWB: 0x1cb, NTU: 0x1f5, TAIL: 0x1f5, INT: 0x1",
            ),
            ("open-power/op-build/issues/3274#2", "tx_timeout recovery level 2, hung_queue 31"),
        ),
    ),
    (
        "network",
        "isolate_node",
        "a link is down",
        (
            (
                "openwrt/openwrt/issues/13122",
                "Tue Feb  6 08:10:52 2024 kern.info kernel: [1312334.845565] mtk_soc_eth 15100000.ethernet eth1: Link is Down",
            ),
        ),
    ),
    (
        "user",
        "stop_and_tell_user",
        "a disk is full",
        (
            ("databrickslabs/dolly/issues/139", "OSError: [Errno 28] No space left on device"),
            (
                "bghira/SimpleTuner/issues/2353",
                "safetensors_rust.SafetensorError: Error while serializing: I/O error: No space left on device (os error 28)",
            ),
            (
                "Plachtaa/VITS-fast-fine-tuning/issues/397",
                "UserWarning: [Errno 28] No space left on device.  joblib will operate in serial mode\nOSError: [Errno 28] No space left on device",
            ),
        ),
    ),
    (
        "unknown",
        "observe",
        "a task did not end in time",
        (
            (
                "Ascend/pytorch/issues/43",
                "rtDeviceSynchronize execute failed, reason=[task timeout][FUNC:FuncErrorReason][FILE:error_message_manage.cc][LINE:53]",
            ),
        ),
    ),
    (
        "software",
        "restart_in_place",
        "a rank crashed",
        (
            ("JiehongLin/SAM-6D/issues/115", "Fatal Python error: Segmentation fault"),
            ("huanglianghua/siamfc-pytorch/issues/17", "segmentation fault (core dumped)"),
            (
                "flairNLP/flair/issues/168",
                "*** Error in `/home/u/envs/NLP/bin/python': double free or corruption (fasttop): 0x00007ffea0033830 ***",
            ),
        ),
    ),
    (
        "user",
        "stop_and_tell_user",
        "the GPU's memory is too small",
        (
            (
                "deepspeedai/DeepSpeed/issues/2899",
                "gpu-q-13: torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 896.00 MiB (GPU 2; 79.17 GiB total capacity; 76.68 GiB already allocated; 381.31 MiB free; 77.24 GiB reserved in total by PyTorch)",
            ),
        ),
    ),
    (
        "hardware",
        "observe",
        "corrected memory errors",
        (
            (
                "radiasoft/devops/issues/134",
                "Feb 23 03:28:16 kernel: mce: [Hardware Error]: Machine check events logged",
            ),
            (
                "radiasoft/devops/issues/134#2",
                "Feb 23 03:28:16  kernel: EDAC MC1: 1 CE memory scrubbing error on CPU_SrcID#1_Ha#0_Chan#0_DIMM#0 (channel:0 slot:0 page:0xee30a0)",
            ),
            (
                "grondo/edac-utils/issues/10",
                "[Mon Jan 27 19:27:15 2020] EDAC sbridge MC0: CPU 0: Machine Check Event: 0 Bank 5: 8c00004000010092",
            ),
            (
                "illinois-scicomp/machine-shop-maintenance/issues/66",
                "[Mon Oct  3 13:52:42 2022] EDAC MC1: 262 CE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0 (channel:1 slot:0 page:0x2031c14)",
            ),
            (
                "illinois-scicomp/machine-shop-maintenance/issues/66#2",
                "[Mon Oct  3 13:52:42 2022] EDAC sbridge MC1: HANDLING MCE MEMORY ERROR",
            ),
        ),
    ),
)
