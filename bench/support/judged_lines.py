"""Lines of public issues from repositories that no rule was written on: the judged half.

They were collected and labelled, by what their threads say, after the rules stood. To mend a rule
on one of them, move all of them to a file beside ``second_lines``, say there what they had judged,
and collect others. A line without a fault is labelled unknown, to be observed.
"""

# Lines are one line each, to be searched for.
# ruff: noqa: E501

from __future__ import annotations

from typing import Final

from bench.support.later_lines import Group

JUDGED_GROUPS: Final[tuple[Group, ...]] = (
    ("user", "stop_and_tell_user", "the credentials do not permit it", (
        ("aws/deep-learning-containers/issues/1130", "failed to solve with frontend dockerfile.v0: failed to create LLB definition: unexpected status code [manifests 1.6.0-gpu-py36-cu101-ubuntu16.04]: 401 Unauthorized"),
        ("allenai/open-instruct/issues/81", "Error response from daemon: unauthorized: You don't have the needed permissions to perform this operation, and you may have invalid credentials."),
        ("aws-samples/amazon-sagemaker-local-mode/issues/9", "botocore.exceptions.ClientError: An error occurred (403) when calling the HeadObject operation: Forbidden"),
        ("wpilibsuite/DetectCoral/issues/20", "ClientError: An error occurred (AccessDeniedException) when calling the CreateTrainingJob operation: User is not authorized to perform: sagemaker:CreateTrainingJob"),
        ("determined-ai/determined/issues/7869", "[36] root: Checkpoint storage validation failed: [Errno 13] Permission denied: '/determined_shared_fs/261390dd-c308-4ce3-ac99-77d52f744f8b'"),
        ("hx173149/C3D-tensorflow/issues/105", "2019-04-04 13:09:09.579104: W tensorflow/core/framework/op_kernel.cc:1273] OP_REQUIRES failed at save_restore_v2_ops.cc:109 : Permission denied: /models; Permission denied"),
    )),
    ("user", "stop_and_tell_user", "the image lacks a module or a library, or has an old one", (
        ("idia-astro/pipelines/issues/61", "ModuleNotFoundError: No module named 'config_parser'"),
        ("eric-moreno/IN/issues/3", "ModuleNotFoundError: No module named 'type_func'"),
        ("leofansq/CPCL/issues/4", "ImportError: libcudart.so.10.0: cannot open shared object file: No such file or directory"),
        ("jax-ml/jax/issues/16078", "2023-05-20 20:06:28.373077: E external/xla/xla/stream_executor/cuda/cuda_dnn.cc:439] Could not create cudnn handle: CUDNN_STATUS_INTERNAL_ERROR"),
        ("nicolov/segmentation_keras/issues/32", "E tensorflow/stream_executor/cuda/cuda_dnn.cc:378] Loaded runtime CuDNN library: 6021 (compatibility version 6000) but source was compiled with 5105 (compatibility version 5100)."),
        ("aws/aws-ofi-nccl/issues/584", "register_mr_buffers:544 NCCL WARN NET/OFI Unable to register memory (type = 2) for device 0. RC: -22, Error: Invalid argument"),
    )),
    ("user", "stop_and_tell_user", "the device's memory is too small", (
        ("erfanzar/EasyDeL/issues/78", "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 21.90G of 7.48G hbm. Exceeded hbm capacity by 14.42G."),
        ("google-deepmind/gemma/issues/85", "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate 15.65G. That was not possible. There are 11.08G free.; (0x0x0_HBM0)"),
        ("mpi4jax/mpi4jax/issues/106", "Error 2 cudaErrorMemoryAllocation: out of memory"),
        ("wizyoung/YOLOv3_TensorFlow/issues/153", "2019-09-11 01:58:49.790228: W tensorflow/core/framework/op_kernel.cc:1318] OP_REQUIRES failed at assign_op.h:117 : Resource exhausted: OOM when allocating tensor with shape[256] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc"),
        ("zai-org/CogVideo/issues/63", "RuntimeError: NPU out of memory. Tried to allocate 35.31 GiB (NPU 0; 60.97 GiB total capacity; 26.13 GiB already allocated)"),
        ("mindspore-lab/mindyolo/issues/236", "RuntimeError: Ascend kernel runtime initialization failed. The details refer to 'Ascend Error Message'."),
        ("QwenLM/Qwen3/issues/12", "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine."),
        ("xusenlinzy/api-for-open-llm/issues/225", "The model's max seq len (8192) is larger than the maximum number of tokens that can be stored in KV cache (4512). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine."),
        ("zhangfaen/finetune-Qwen2-VL/issues/8", "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.02 GiB. GPU 1 has a total capacity of 79.33 GiB of which 923.69 MiB is free."),
    )),
    ("user", "stop_and_tell_user", "the job used more memory than the host has", (
        ("real-stanford/flingbot/issues/11", "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory."),
        ("jchengai/planTF/issues/28", "(raylet) node_manager.cc:3064: 12 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at node"),
        ("researchmm/Stark/issues/7", "RuntimeError: DataLoader worker (pid(s) 36469) exited unexpectedly"),
        ("WenmuZhou/DBNet.pytorch/issues/108", "RuntimeError: DataLoader worker (pid 1454) is killed by signal: Killed."),
        ("IBM/FfDL/issues/127", "Training process finished. Exit code: 137"),
    )),
    ("user", "stop_and_tell_user", "the configuration or the job's request is wrong", (
        ("CASIA-LMC-Lab/AnomalyGPT/issues/19", "AssertionError: Check batch related parameters. train_batch_size is not equal to micro_batch_per_gpu * gradient_acc_step * world_size 16 != 1 * 8 * 1"),
        ("hkchengrex/XMem/issues/18", "train.py: error: unrecognized arguments: --local_rank=0"),
        ("OFA-Sys/Chinese-CLIP/issues/74", "main.py: error: unrecognized arguments: --local-rank=0"),
        ("real-stanford/scalingup/issues/6", "(autoscaler +32s) Error: No available node types can fulfill resource request {'CPU': 1.0, 'GPU': 1.0}. Add suitable node types to this cluster to resolve this issue."),
        ("ultralytics/ultralytics/issues/7038", "bootstrap.cc:48 NCCL WARN Bootstrap : no socket interface found"),
        ("triton-inference-server/tensorrtllm_backend/issues/207", "E1212 03:05:00.535445 11684 model_lifecycle.cc:622] failed to load 'tensorrt_llm' version 1: Internal: unexpected error when creating modelInstanceState: [json.exception.parse_error.101] parse error at line 1, column 1"),
        ("szcf-weiya/techNotes/issues/7", "salloc: error: Job submit/allocate failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"),
        ("aidenlab/juicer/issues/143", "sbatch: error: Batch job submission failed: Requested time limit is invalid (missing or exceeds some limit)"),
    )),
    ("user", "stop_and_tell_user", "the job ran longer than it may", (
        ("biocore/qiime/issues/1048", "=>> PBS: job killed: walltime 259217 exceeded limit 259200"),
        ("marbl/canu/issues/444", "TERM_RUNLIMIT: job killed after reaching LSF run time limit."),
    )),
    ("user", "stop_and_tell_user", "shapes, labels or data do not fit, or the data are not there", (
        ("talbenha/cell-tracker-gnn/issues/8", "RuntimeError: mat1 and mat2 shapes cannot be multiplied (30812x12 and 128x64)"),
        ("patrickloeber/pytorch-chatbot/issues/12", "RuntimeError: mat1 and mat2 shapes cannot be multiplied (8x8 and 54x8)"),
        ("VainF/DeepLabV3Plus-Pytorch/issues/91", "IndexError: Target 225 is out of bounds."),
        ("ArgoHA/D-FINE-seg/issues/25", "IndexError: list index out of range"),
        ("hustvl/YOLOP/issues/191", "FileNotFoundError: [Errno 2] No such file or directory: '/media/u/DataSet/YOLOP/det_annotation/train/1f864b3f-a736fa8b.json'"),
        ("ultralytics/yolov3/issues/272", "FileNotFoundError: [Errno 2] No such file or directory: '../coco/trainvalno5k.txt'"),
        ("pytorch/vision/issues/138", "OSError: image file is truncated (54 bytes not processed)"),
        ("lucidrains/lightweight-gan/issues/109", "PIL.UnidentifiedImageError: cannot identify image file 'Cat/666.jpg'"),
        ("csuhan/opendet2/issues/29", "FloatingPointError: Loss became infinite or NaN at iteration=5593!"),
    )),
    ("user", "stop_and_tell_user", "the program was not built for this CPU", (
        ("IBM/MAX-Weather-Forecaster/issues/31", "Illegal instruction (core dumped)"),
        ("aldro61/kover/issues/42", "job_scripts/6843341: line 13: 51804 Illegal instruction (core dumped)"),
    )),
    ("user", "stop_and_tell_user", "the disk is full", (
        ("NVIDIA/pyxis/issues/53", "slurmstepd: error: pyxis:     Write failed because No space left on device"),
        ("LoicGrobol/decofre/issues/7", "lmdb.DiskError: No space left on device"),
    )),
    ("software", "isolate_node", "the node's driver does not work, or does not fit", (
        ("CFSworks/nvml_fix/issues/36", "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running."),
        ("Xilinx/Vitis-AI/issues/103", "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=10.0"),
        ("SyneRBI/PETRIC2/issues/27", "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8, please update your driver to a newer version, or use an earlier cuda container"),
        ("aws-solutions-library-samples/guidance-for-machine-learning-inference-on-aws/issues/2", "2022-Mar-29 07:07:29.0082    11:11    ERROR   NRT:nrt_init   Unable to determine Neuron Driver version. Please check aws-neuron-dkms package is installed."),
        ("aws-neuron/aws-neuron-sdk/issues/192", "nrtd[1]: [NRTD:InitTongas] Failed to initialize devices, error:2"),
    )),
    ("software", "isolate_node", "a network card cannot be started", (
        ("proxmox/pve-kernel/issues/6", "bnx2x: probe of 0000:01:00.0 failed with error -22"),
        ("open-power-host-os/builds/issues/25", "[ 226.595182] bnx2x: [bnx2x_init_firmware:13444(net0)]Can't load firmware file bnx2x/bnx2x-e2-7.13.1.0.fw"),
        ("pocopico/rp-ext/issues/129", "[    5.663152] mlx5_core: probe of 0000:01:00.0 failed with error -22"),
    )),
    ("software", "isolate_node", "the node's kernel cannot mount the image", (
        ("Azure/batch-shipyard/issues/359", "FATAL:  container creation failed: while mounting image /proc/self/fd/3: kernel reported a bad superblock for squashfs image partition"),
    )),
    ("software", "restart_in_place", "a rank crashed", (
        ("MhLiao/DB/issues/94", "RuntimeError: DataLoader worker (pid 25902) is killed by signal: Segmentation fault"),
    )),
    ("platform", "isolate_node", "the node is not as the batch system or the cluster needs it", (
        ("AMDResearch/hpcfund/issues/69", "salloc: Prolog failure on node k003-006"),
        ("Azure/az-hop/issues/686", "[2021-12-14T09:52:21.414] debug:  Node hb120v2-2 has low real_memory size (435161 < 443596)"),
        ("aws/aws-parallelcluster/issues/6842", "[2025-07-04T00:54:23.932] update_node: node od-r7i-l-1 reason set to: Scheduler health check failed"),
        ("NVIDIA/pyxis/issues/12", "slurmstepd: error: pyxis:     mkdir: cannot create directory '/run/enroot': Permission denied"),
        ("k3s-io/k3s/issues/6290", "failed to garbage collect required amount of images. Wanted to free 15152714547 bytes, but freed 0 bytes"),
        ("Project-MONAI/tutorials/issues/831", "kernel:[ 5508.496754] watchdog: BUG: soft lockup - CPU#72 stuck for 23s! [cuda-EvtHandlr:4856]"),
    )),
    ("platform", "restart_in_place", "the cluster could not start the pod, or took it away", (
        ("openshift/instaslice-operator/issues/140", "Pod was rejected: Allocate failed due to no healthy devices present; cannot allocate unhealthy devices nvidia.com/mig-1g.5gb, which is unexpected"),
        ("awslabs/benchmark-ai/issues/549", 'NetworkPlugin cni failed to set up pod "b-ec372bd8-f2q6k_default" network: add cmd: failed to assign an IP address to container'),
        ("pangeo-data/pangeo-binder/issues/194", 'Failed to pull image "jupyter/repo2docker:0.11.0-169.gae6c2dc": rpc error: code = Unknown desc = Error response from daemon: toomanyrequests: You have reached your pull rate limit.'),
        ("megagonlabs/t5-japanese/issues/1", "INFO:tensorflow:ShutdownHook: lame workers found: HeartbeatManager(/job:worker/replica:0/task:0/device:CPU:0)"),
        ("AI-Hypercomputer/gpu-recipes/issues/2", "Stopping coordination service as cluster registration failed. This may be due to 1) some tasks crashed earlier before connecting, 2) some tasks were never scheduled, or 3) scheduling delays."),
        ("saferwall/saferwall/issues/301", 'apiserver received an error that is not an metav1.Status: rpctypes.EtcdError{code:0xe, desc:"etcdserver: request timed out"}'),
    )),
    ("hardware", "isolate_node", "a disk or a GPU fails", (
        ("scylladb/scylla-tools-java/issues/217", 'kernel: XFS (nvme0n1p1): metadata I/O error in "xfs_trans_read_buf_map" at daddr 0x8e8c20 len 8 error 74'),
        ("dm-vdo/kvdo/issues/25", 'kernel: XFS (dm-7): metadata I/O error: block 0x280000010 ("xlog_bread_noalign") error 5 numblks 8'),
        ("erigontech/erigon/issues/3104", "[261077.109886] nvme nvme0: I/O 259 QID 27 timeout, aborting"),
        ("Cosmos-OpenSSD/OCSSD-plus/issues/5", "kernel: [ 2410.027903] nvme nvme0: I/O 111 QID 1 timeout, disable controller"),
        ("trexminer/T-Rex/issues/642", "hwmc GPU2: unable to get fan speed - GPU is lost (15)"),
    )),
    ("hardware", "reset_gpu", "a memory error that was not corrected", (
        ("jcjohnson/neural-style/issues/312", "uncorrectable ECC error encountered"),
    )),
    ("hardware", "observe", "corrected errors, and clocks lowered by heat", (
        ("balena-os/balena-intel/issues/304", "kernel: pcieport 0000:00:1c.0: AER: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Transmitter ID)"),
        ("henrygd/beszel/issues/1558", "[  333.277362] [Hardware Error]: Corrected error, no action required."),
        ("erpalma/throttled/issues/239", "mce: CPU1: Core temperature above threshold, cpu clock throttled (total events = 2311)"),
        ("NVIDIA/DCGM/issues/270", "ERROR [1514002:1514004] [[Health]] Detected a WARNING in health system Thermal: 'Detected clocks event due to thermal violation in GPU 2.'"),
    )),
    ("network", "isolate_node", "a card resets, or its link is down", (
        ("coreos/bugs/issues/2508", "[ 737.350162] bond0: link status down for interface enp1s0f0, disabling it in 200 ms"),
        ("intel/ethernet-linux-ice/issues/12", "ICE OICR event notification: oicr = 0x06000803"),
    )),
    ("network", "restart_in_place", "the remote end cannot be reached, or another rank went away", (
        ("wandb/wandb/issues/10044", "wandb: ERROR Run initialization has timed out after 90.0 sec."),
        ("alvinliu0/HumanGaussian/issues/4", "Failed to establish a new connection: [Errno 101] Network is unreachable"),
        ("roboflow/rf-detr/issues/100", "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the cached files."),
        ("wenet-e2e/wenet/issues/1891", "include/socket.h:403 NCCL WARN Connect to fe80::c4eb:49ff:fe04:e32d%6<57335> failed : Network is unreachable"),
        ("pytorch/elastic/issues/134", "multigpu:141:158 [0] include/socket.h:416 NCCL WARN Net : Connection closed by remote peer"),
    )),
    ("storage", "pause_job", "a shared file system is away", (
        ("aws/aws-parallelcluster/issues/1150", "kernel: INFO: task strat1_sim:78808 blocked for more than 120 seconds."),
        ("ceph/ceph-csi/issues/634", "rbd: map failed: (110) Connection timed out"),
        ("kahing/goofys/issues/300", "/mnt/mountpoint: Transport endpoint is not connected"),
        ("s3fs-fuse/s3fs-fuse/issues/635", "ls: cannot access /mnt/naip: Transport endpoint is not connected"),
        ("cfg2html/cfg2html/issues/51", "NFS server n1 not responding still trying"),
        ("csabahenk/cirros/issues/9", "[ 4182.497622] nfs: server 10.0.0.2 not responding, timed out"),
    )),
    ("unknown", "observe", "a time-out that tells no cause", (
        ("taohan10200/STEERER/issues/20", "[E ProcessGroupNCCL.cpp:587] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE, Timeout(ms)=3600000) ran for 3606109 milliseconds before timing out."),
        ("lyuwenyu/RT-DETR/issues/599", "RuntimeError: NCCL communicator was aborted on rank 6. Original reason for failure was: Watchdog caught collective operation timeout"),
        ("InternLM/lmdeploy/issues/3354", "EI0002: [PID: 198748] 2025-03-26-13:49:01.670.614 The wait execution of the Notify register times out."),
        ("jax-ml/jax/issues/23599", "coordination_service.cc:1170] /job:jax_worker/replica:0/task:0 has been set to ERROR in coordination service: UNAVAILABLE: Task /job:jax_worker/replica:0/task:0 heartbeat timeout."),
    )),
    ("unknown", "observe", "only what follows from another fault", (
        ("HabanaAI/vllm-fork/issues/2134", "vllm.engine.multiprocessing.MQEngineDeadError: Engine loop is not running. Inspect the stacktrace to find the original error: RuntimeError('Engine process (pid 514) died.')."),
        ("alex-petrenko/sample-factory/issues/285", "[2023-09-18 21:35:46,519][196071] No heartbeat for components :InferenceWorker_p0-w0 (337 seconds)"),
        ("xzz777/SCTNet/issues/47", 'msg: "Process failed with exitcode 1"'),
    )),
    ("unknown", "observe", "no fault", (
        ("meta-recsys/generative-recommenders/issues/176", "W tensorflow/compiler/tf2tensorrt/utils/py_utils.cc:38] TF-TRT Warning: Could not find TensorRT"),
        ("Lumi-supercomputer/LUMI-AI-Guide/issues/3", "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid your system being overloaded"),
        ("clovaai/donut/issues/27", "Some weights of DonutModel were not initialized from the model checkpoint at naver-clova-ix/donut-base and are newly initialized because the shapes did not match"),
        ("data-infra/cube-studio/issues/29", "request to query NVSwitch device information from NVSwitch driver failed with error:WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]"),
        ("volcano-sh/volcano/issues/1094", "volcano  1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable."),
        ("ROCm/rccl/issues/1026", 'NCCL WARN Missing "iommu=pt" from kernel command line which can lead to system instablity or hang!'),
    )),
)  # fmt: skip
