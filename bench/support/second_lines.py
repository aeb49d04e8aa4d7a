"""Lines of which most judged class 82.5 %, action 86.0 % of 57 before rules were mended for them."""

# Lines are one line each, to be searched for.
# ruff: noqa: E501

from __future__ import annotations

from typing import Final

from bench.support.later_lines import Group

SECOND: Final[tuple[Group, ...]] = (
    (
        "user",
        "stop_and_tell_user",
        "a kernel of the program reads what is not its own",
        (
            (
                "skhu101/GauHuman/issues/21",
                "RuntimeError: merge_sort: failed to synchronize: cudaErrorIllegalAddress: an illegal memory access was encountered",
            ),
            (
                "Dao-AILab/flash-attention/issues/1968",
                "CUDA error: an illegal memory access was encountered",
            ),
            (
                "bubbliiiing/yolo3-pytorch/issues/83",
                "RuntimeError: CUDA error: an illegal memory access was encountered",
            ),
            (
                "unslothai/unsloth/issues/2886",
                "terminate called after throwing an instance of 'c10::Error'\n  what():  CUDA error: an illegal memory access was encountered",
            ),
            (
                "half-potato/ever_training/issues/7",
                "RuntimeError: CUDA error: an illegal memory access was encountered",
            ),
            (
                "JarodMica/StyleTTS-WebUI/issues/42",
                "RuntimeError: CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be asynchronously reported at some other API call",
            ),
            (
                "flexflow/flexflow-train/issues/334",
                "CU: cuEventSynchronize(e) = 700 (CUDA_ERROR_ILLEGAL_ADDRESS): an illegal memory access was encountered",
            ),
            ("karpathy/llm.c/issues/114", "CUDA ERROR an illegal memory access was encountered"),
            (
                "tensorflow/tensorflow/issues/25866",
                "2019-02-21 16:43:26.973428: E tensorflow/stream_executor/cuda/cuda_driver.cc:1011] could not synchronize on CUDA context: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered ::",
            ),
        ),
    ),
    (
        "software",
        "restart_in_place",
        "a kernel died, and no reason was found",
        (
            (
                "tensorflow/tensorflow/issues/25866#2",
                "2019-02-19 12:32:46.833634: E tensorflow/stream_executor/cuda/cuda_driver.cc:1011] could not synchronize on CUDA context: CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure ::",
            ),
        ),
    ),
    (
        "user",
        "stop_and_tell_user",
        "the image lacks a part",
        (
            ("docling-project/docling-serve/issues/269", "No module named 'flash_attn_2_cuda'"),
            (
                "EleutherAI/gpt-neox/issues/1165",
                "RuntimeError: apex.optimizers.FusedAdam requires cuda extensions",
            ),
            (
                "xorbitsai/inference/issues/2240",
                "ImportError: [address=0.0.0.0:38651, pid=163] This modeling file requires the following packages that were not found in your environment: flash_attn. Run `pip install flash_attn`",
            ),
        ),
    ),
    (
        "user",
        "stop_and_tell_user",
        "the job used more memory than it may",
        (
            (
                "nextflow-io/nextflow/issues/5932",
                "slurmstepd: error: Detected 1 oom_kill event in StepId=11300781.0. Some of the step tasks have been OOM Killed.",
            ),
            (
                "nextflow-io/nextflow/issues/5932#2",
                "srun: error: sdumont6156: task 0: Out Of Memory",
            ),
            (
                "lanl/PyBNF/issues/118",
                "slurmstepd: error: Detected 2 oom-kill event(s) in step 3756240.batch cgroup.",
            ),
        ),
    ),
    (
        "user",
        "stop_and_tell_user",
        "the job ran longer than it may",
        (
            (
                "ZettaAI/zetta_utils/issues/671",
                "slurmstepd: error: *** JOB 494583 ON n1 CANCELLED AT 2024-04-20T09:09:37 DUE TO TIME LIMIT ***",
            ),
            (
                "DataBiosphere/toil/issues/4706",
                "slurmstepd-phoenix-07: error: *** JOB 1449736 ON phoenix-07 CANCELLED AT 2023-12-03T12:47:09 DUE TO TIME LIMIT ***",
            ),
            (
                "labsyspharm/mcmicro/issues/163",
                "slurmstepd: error: *** JOB 13055114 ON compute-h-17-51 CANCELLED AT 2020-07-11T22:48:26 DUE TO TIME LIMIT ***",
            ),
            (
                "galaxyproject/pulsar/issues/408",
                "slurmstepd: error: *** JOB 3561528 ON js2-large10 CANCELLED AT 2025-08-19T17:09:34 DUE TO TIME LIMIT ***",
            ),
            (
                "Nextomics/NextPolish/issues/122",
                "slurmstepd: error: JOB CANCELLED DUE TO TIME LIMIT",
            ),
        ),
    ),
    (
        "unknown",
        "observe",
        "only what follows from another fault",
        (
            (
                "ZettaAI/zetta_utils/issues/671#2",
                "srun: Job step aborted: Waiting up to 47 seconds for job step to finish.",
            ),
        ),
    ),
    (
        "platform",
        "isolate_node",
        "processes on the node could not be ended",
        (
            (
                "ai4d-iasc/trixie/issues/45",
                "[63532.0] error: *** STEP 63532.0 STEPD TERMINATED ON cn106 AT 2020-12-14T09:44:56 DUE TO JOB NOT ENDING WITH SIGNALS ***",
            ),
        ),
    ),
    (
        "hardware",
        "isolate_node",
        "a disk fails",
        (
            (
                "Requiem4Eternity/Appstream/issues/90",
                "May 29 03:24:48 k8snode234 kernel: print_req_error: I/O error, dev sdc, sector 628940360 flags 80700",
            ),
            (
                "Requiem4Eternity/Appstream/issues/90#2",
                "May 29 03:24:48 k8snode234 kernel: sd 1:0:2:0: [sdc] tag#3023 FAILED Result: hostbyte=DID_BAD_TARGET driverbyte=DRIVER_OK",
            ),
        ),
    ),
    (
        "user",
        "stop_and_tell_user",
        "the program was not built for this GPU",
        (
            (
                "Comfy-Org/ComfyUI/pull/16438",
                "CUDA error: no kernel image is available for execution on the device",
            ),
            (
                "Comfy-Org/ComfyUI/pull/16438#2",
                "UserWarning: NVIDIA card with CUDA capability sm_120 is not compatible with the current PyTorch installation.",
            ),
            (
                "SCIInstitute/ShapeWorks/issues/1161",
                "RuntimeError: CUDA error: no kernel image is available for execution on the device",
            ),
        ),
    ),
    (
        "platform",
        "isolate_node",
        "the limit of locked memory",
        (
            (
                "openucx/ucx/issues/8684",
                "ib_log.c:246  UCX  ERROR mlx5_0: ibv_create_cq() failed: Cannot allocate memory. Please set max locked memory (ulimit -l) to 'unlimited' (current: 64 kbytes)",
            ),
            (
                "NVIDIA/cudf-spark/pull/7632",
                "ERROR mlx5_0: ibv_create_cq() failed: Cannot allocate memory.",
            ),
        ),
    ),
    (
        "software",
        "observe",
        "more memory keys were asked for than the card has",
        (
            (
                "openucx/ucx/issues/6264",
                "[33059.091472] mlx5_core 0000:41:00.0: mlx5_cmd_out_err:800:(pid 233522): CREATE_MKEY(0x200) op_mod(0x0) failed, status limits exceeded(0x8), syndrome (0x18af6), err(-12)",
            ),
        ),
    ),
    (
        "hardware",
        "isolate_node",
        "the GPU cannot be reached",
        (
            (
                "JosephKJ/OWOD/issues/81",
                "Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost. Reboot the system to recover this GPU",
            ),
            (
                "NVIDIA/dcgm-exporter/issues/604",
                "Unable to determine the device handle for GPU 000:BA:80.0: Unknown Error",
            ),
            (
                "AlexeyAB/darknet/issues/86",
                "Unable to determine the device handle for GPU 0000:03:00.0: GPU is lost.  Reboot\n         the system to recover this GPU",
            ),
            (
                "NVIDIA/nvidia-docker/issues/1553",
                "Unable to determine the device handle for GPU 0000:09:00.0: Unknown Error",
            ),
        ),
    ),
    (
        "user",
        "stop_and_tell_user",
        "the quota or the disk is full",
        (
            ("BinItAI/visdet/issues/95", "OSError: [Errno 122] Disk quota exceeded"),
            ("udacity/sdc-issue-reports/issues/1409", "[Error 28] No space left on device"),
            ("nteract/papermill/issues/803", "[Errno 122] Disk quota exceeded"),
            (
                "GeoscienceAustralia/dea-notebooks/issues/755",
                "OSError: [Errno 122] Disk quota exceeded: '/home/u/.local/share/jupyter/runtime/kernel.json'",
            ),
            (
                "lrstanley/Code/issues/5",
                '[08:00:30] IOError: [Errno 122] Disk quota exceeded (file "/root/code/modules/find.py", line 65, in save_db)',
            ),
            (
                "keras-team/keras-tuner/issues/390",
                "tensorflow.python.framework.errors_impl.ResourceExhaustedError: disk quota exceeded [Op:SaveV2]",
            ),
            (
                "keras-team/keras-tuner/issues/390#2",
                "tensorflow.python.framework.errors_impl.ResourceExhaustedError: models/variables/part-00000-of-00002.data; No space left on device",
            ),
        ),
    ),
    (
        "user",
        "stop_and_tell_user",
        "the token may not read the model",
        (
            (
                "georgian-io/LLM-Finetuning-Toolkit/issues/158",
                "OSError: You are trying to access a gated repo.",
            ),
            (
                "huggingface/huggingface_hub/issues/2586",
                "requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: https://huggingface.co/meta-llama/Llama-2-7b-chat-hf/resolve/main/config.json",
            ),
            (
                "zylon-ai/private-gpt/issues/1985",
                "Cannot access gated repo for url https://huggingface.co/mistralai/Mistral-7B-Instruct-v0.2/resolve/main/config.json.",
            ),
            (
                "Aratako/T5Gemma-TTS/issues/6",
                "401 Client Error. (Request ID: Root=1-69cf8f08;fa82d14d)",
            ),
            (
                "kyegomez/NeoSapiens/issues/3",
                "huggingface_hub.utils._errors.GatedRepoError: 401 Client Error. (Request ID: Root=1-661471eb)",
            ),
            (
                "city96/ComfyUI_ExtraModels/issues/99",
                "Access to model google/gemma-2-2b-it is restricted. You must have access to it and be authenticated to access it. Please log in.",
            ),
            (
                "huggingface/transformers/issues/29177",
                "HTTPError: 403 Client Error: Forbidden for url: https://huggingface.co/google/gemma-7b/resolve/main/config.json",
            ),
            (
                "TinyLLaVA/TinyLLaVA_Factory/issues/130",
                "OSError: You are trying to access a gated repo.\nMake sure to have access to it at https://huggingface.co/meta-llama/Llama-2-7b-hf.",
            ),
            (
                "zhaoxlpku/DASC7606-A3/issues/1",
                "    Access to model meta-llama/Llama-2-7b-hf is restricted. You must have access to it and be authenticated to access it. Please log in.",
            ),
        ),
    ),
    (
        "storage",
        "pause_job",
        "a volume cannot be mounted",
        (
            (
                "kubernetes-sigs/nfs-subdir-external-provisioner/issues/198",
                "Unable to attach or mount volumes: unmounted volumes=[nfs-client-root], unattached volumes=[nfs-client-root]: timed out waiting for the condition",
            ),
            (
                "kubernetes-csi/csi-driver-nfs/issues/649",
                'Warning  FailedMount  2m57s (x3 over 8m1s)  kubelet MountVolume.SetUp failed for volume "pvc-737f9975" : rpc error: code = DeadlineExceeded desc = context deadline exceeded',
            ),
            (
                "nacos-group/nacos-k8s/issues/69",
                "Output: Running scope as unit run-17613.scope. mount.nfs: Connection timed out.",
            ),
        ),
    ),
    (
        "user",
        "stop_and_tell_user",
        "the server has no such path",
        (
            (
                "alibaba/nacos/issues/5203",
                "mount.nfs: mounting 192.168.0.121:/nfs/nfs-data/nacos-datadir failed, reason given by server: No such file or directory",
            ),
        ),
    ),
    (
        "hardware",
        "isolate_node",
        "a card failed and holds its processes",
        (
            (
                "todxx/teamredminer/issues/44",
                "Mar 28 01:59:54 rig2 kernel: INFO: task teamredminer:1839 blocked for more than 120 seconds.",
            ),
        ),
    ),
    (
        "storage",
        "isolate_node",
        "processes wait for a disk",
        (
            (
                "pop-os/system76-power/issues/179",
                "[ 9426.062972] INFO: task GpuWatchdog:2837 blocked for more than 120 seconds.",
            ),
        ),
    ),
    (
        "unknown",
        "restart_in_place",
        "a rank was killed",
        (
            ("CharlesShang/FastMaskRCNN/issues/172", "Killed"),
            (
                "yjh0410/PyTorch_YOLO-Family/issues/15",
                "Process finished with exit code 137 (interrupted by signal 9: SIGKILL)",
            ),
            (
                "resistzzz/Prompt4NR/issues/3",
                "torch.multiprocessing.spawn.ProcessExitedException: process 0 terminated with signal SIGKILL",
            ),
            (
                "xiaomi-research/time-r1/issues/9",
                "E0813 06:19:49.809000 161210 site-packages/torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -9) local_rank: 2 (pid: 161617) of binary: /opt/bin/python3.11",
            ),
        ),
    ),
    (
        "network",
        "restart_in_place",
        "another rank went away",
        (
            (
                "xorbitsai/inference/issues/4421",
                '[rank1]:[W1229 22:06:38.480071392 ProcessGroupNCCL.cpp:1662] [PG ID 0 PG GUID 0 Rank 1] Failed to check the "should dump" flag on TCPStore, (maybe TCPStore server has shut down too early), with error: Broken pipe',
            ),
            (
                "tdrussell/diffusion-pipe/issues/333",
                "[rank6]:[W729 10:15:17.529361055 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=76, addr=[localhost]:60950, remote=[localhost]:29500): Connection reset by peer",
            ),
            (
                "modal-labs/modal-examples/issues/1558",
                "[rank0]:[W510 09:16:34.395619793 TCPStore.cpp:106] [c10d] sendBytes failed on SocketImpl(fd=62, addr=[::ffff:10.0.0.7]:54761, remote=[::ffff:10.0.0.7]:46989): Broken pipe",
            ),
            (
                "NVIDIA/JAX-Toolbox/issues/194",
                "E external/xla/xla/service/gpu/nccl_utils.cc:191] Aborting communicator: 0x5555a108ff90 due to async NCCL error: remote process exited or there was a network error",
            ),
            (
                "NVIDIA/nccl/issues/193",
                "worker0-0d9gnb:15:91 [3] include/socket.h 398 NCCL WARN Call to recv failed : Connection reset by peer.",
            ),
        ),
    ),
    (
        "network",
        "restart_in_place",
        "another process went away",
        (("MLOPTPSU/FedTorch/issues/4", "BrokenPipeError: [Errno 32] Broken pipe"),),
    ),
    (
        "network",
        "restart_in_place",
        "another rank cannot be reached",
        (
            (
                "hkproj/pytorch-transformer-distributed/issues/1",
                "socketStartConnect: Connect to 192.168.19.14<52822> failed : No route to host",
            ),
            (
                "NVIDIA/nccl/issues/975",
                "misc/socket.cc:483 NCCL WARN socketStartConnect: Connect to fe80::1%ib1<17943> failed : Software caused connection abort",
            ),
        ),
    ),
    (
        "unknown",
        "observe",
        "only what follows from another fault",
        (
            (
                "pytorch/pytorch/issues/124380",
                "proxy.cc:1557 NCCL WARN [Proxy Service 1] Failed to execute operation Init from rank 2, retcode 3",
            ),
        ),
    ),
    (
        "user",
        "stop_and_tell_user",
        "the script is not in the container",
        (
            (
                "mlcommons/training/issues/147",
                "python: can't open file 'tools/train_net.py': [Errno 2] No such file or directory",
            ),
            (
                "kubeflow/katib/issues/347",
                "python: can't open file '/var/mnist.py': [Errno 2] No such file or directory",
            ),
        ),
    ),
    (
        "network",
        "isolate_node",
        "a port of a network card failed",
        (
            (
                "Lightning-AI/lit-llama/issues/380",
                "n-48:34050:34121 [0] transport/net_ib.cc:93 NCCL WARN NET/IB : Got async event : port error",
            ),
        ),
    ),
    (
        "network",
        "isolate_node",
        "a network card failed",
        (
            (
                "NVIDIA/nccl/issues/230",
                "[1,12]<stdout>:c-1:815:864 [0] transport/net_ib.cu:80 NCCL WARN NET/IB : Got async event : local catastrophic error",
            ),
        ),
    ),
    (
        "platform",
        "isolate_node",
        "RDMA was refused access to memory",
        (
            (
                "NVIDIA/nccl/issues/1710",
                "node201:127799:127863 [0] transport/net_ib.cc:101 NCCL WARN NET/IB : mlx5_0:1 Got async event : local access violation work queue error",
            ),
            (
                "openucx/ucx/issues/9515",
                "[a670n1:162239:0:162239] ib_mlx5_log.c:177  Local protection on mlx5_0:1/IB (synd 0x4 vend 0x51 hw_synd 0/2)",
            ),
        ),
    ),
    (
        "storage",
        "pause_job",
        "a shared file system is away",
        (
            (
                "juicedata/juicefs-csi-driver/issues/1640",
                "ls: cannot access '/data': Transport endpoint is not connected",
            ),
            (
                "kublr/app-gluster/issues/1",
                'pod "63ae3caf-7c2f-11e7" (UID: "63ae3caf") with: stat /var/lib/kubelet/pods/63ae3caf/volumes/kubernetes.io~glusterfs/uploads: transport endpoint is not connected',
            ),
        ),
    ),
    (
        "storage",
        "pause_job",
        "a volume cannot be mounted",
        (
            (
                "rook/rook/issues/2610",
                'MountVolume.SetUp failed for volume "storage-initializer" : mount command failed, status: Failure, reason: failed to mount filesystem rook-fs',
            ),
            (
                "coreos/coreos-kubernetes/issues/838",
                'MountVolume.SetUp failed for volume "kubernetes.io/cephfs/f0b62db6-cephfs" (spec.Name: "cephfs") pod "f0b62db6" with: CephFS: mount failed: mount failed: exit status 32',
            ),
        ),
    ),
    (
        "user",
        "stop_and_tell_user",
        "a kernel of the program does not fit",
        (
            (
                "marin-community/marin/issues/7956",
                "CUDA error: Could not synchronize CUDA stream: CUDA_ERROR_ILLEGAL_INSTRUCTION: an illegal instruction was encountered",
            ),
        ),
    ),
    (
        "user",
        "stop_and_tell_user",
        "a kernel of the program reads what is not its own",
        (("facebookresearch/Detectron/issues/32", "an illegal memory access was encountered"),),
    ),
    (
        "network",
        "restart_in_place",
        "a rank cannot be reached",
        (
            (
                "sgl-project/sglang/issues/3226",
                "RuntimeError: Gloo connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp/pair.cc:144] no error",
            ),
        ),
    ),
    (
        "software",
        "isolate_node",
        "the node's runtime is not set up for GPUs",
        (
            (
                "NVIDIA/k8s-device-plugin/issues/60",
                "Failed to initialize NVML: could not load NVML library.",
            ),
        ),
    ),
)
