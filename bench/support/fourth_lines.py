"""Lines that judged class 60.9 %, action 65.2 % of 46 before rules were mended for them."""

# Lines are one line each, to be searched for.
# ruff: noqa: E501

from __future__ import annotations

from typing import Final

from bench.support.later_lines import Group

FOURTH: Final[tuple[Group, ...]] = (
    (
        "software",
        "isolate_node",
        "the node's driver does not fit",
        (
            (
                "easydiffusion/easydiffusion/issues/379",
                "UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 803: system has unsupported display driver / cuda driver combination",
            ),
            (
                "glotzerlab/hoomd-blue/issues/542",
                "system has unsupported display driver / cuda driver combination",
            ),
            (
                "apache/mxnet/issues/3486",
                "CUDA driver version is insufficient for CUDA runtime version",
            ),
            (
                "Akegarasu/lora-scripts/issues/101",
                "Error CUDA driver version is insufficient for CUDA runtime version at line 167 in file csrc\\ops.cu",
            ),
        ),
    ),
    (
        "user",
        "stop_and_tell_user",
        "the image's libraries did not fit; installing others mended it",
        (
            (
                "CompVis/stable-diffusion/issues/438",
                "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 803: system has unsupported display driver / cuda driver combination",
            ),
        ),
    ),
    (
        "user",
        "stop_and_tell_user",
        "the GPU's memory is too small",
        (
            (
                "axolotl-ai-cloud/axolotl/issues/1717",
                "[rank0]: RuntimeError: CUDA error: out of memory",
            ),
        ),
    ),
    (
        "user",
        "stop_and_tell_user",
        "shared memory ran out",
        (
            (
                "OptimalScale/LMFlow/issues/430",
                "[ERROR] [launch.py:434:sigkill_handler] ['/opt/bin/python', '-u', 'examples/finetune.py', '--local_rank=2'] exits with return code = -7",
            ),
        ),
    ),
    (
        "hardware",
        "observe",
        "an error of memory that was recovered",
        (
            (
                "andikleen/mcelog/issues/74",
                "2019-08-19T04:18:38.274661-04:00 n1 kernel: [ 261.273227] {1}[Hardware Error]: event severity: recoverable",
            ),
        ),
    ),
    (
        "hardware",
        "observe",
        "corrected memory errors",
        (
            (
                "mej/nhc/pull/23",
                "ERROR:  nhc:  Health check failed:  check_hw_edac:  ECC errors detected - 31 corrected memory errors detected (limit of 9).",
            ),
        ),
    ),
    (
        "storage",
        "pause_job",
        "a shared file system is away",
        (("util-linux/util-linux/issues/1309", "mount.nfs: Connection timed out"),),
    ),
    (
        "user",
        "stop_and_tell_user",
        "the image lacks a module",
        (("OpenRLHF/OpenRLHF/issues/790", "ModuleNotFoundError: No module named 'flash_attn'"),),
    ),
    (
        "user",
        "stop_and_tell_user",
        "the image lacks nvcc",
        (
            (
                "saturncloud/images/pull/479",
                "FileNotFoundError: [Errno 2] No such file or directory: '/usr/local/cuda/bin/nvcc'",
            ),
        ),
    ),
    (
        "network",
        "restart_in_place",
        "another host cannot be reached",
        (
            (
                "horovod/horovod/issues/1226",
                "ssh: connect to host 192.168.0.119 port 12345: Connection refused",
            ),
            (
                "horovod/horovod/issues/2043",
                "A process or daemon was unable to complete a TCP connection\nto another process:\n  Local host:    a\n  Remote host:   b\nThis is usually caused by a firewall on the remote host.",
            ),
            (
                "horovod/horovod/issues/504",
                "ORTE was unable to reliably start one or more daemons.",
            ),
        ),
    ),
    (
        "network",
        "restart_in_place",
        "another host went away",
        (
            (
                "garyexplains/examples/issues/13",
                "ORTE has lost communication with a remote daemon.\n\n  HNP daemon   : [[64112,0],0] on node a\n  Remote daemon: [[64112,0],1] on node 10.126.10.10",
            ),
        ),
    ),
    (
        "network",
        "restart_in_place",
        "the connection to the store was lost",
        (
            (
                "alibaba/Pai-Megatron-Patch/issues/468",
                "torch.distributed.DistStoreError: Socket Timeout",
            ),
        ),
    ),
    (
        "platform",
        "restart_in_place",
        "the gang did not come together",
        (
            (
                "ymcui/Chinese-LLaMA-Alpaca-2/issues/274",
                "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError",
            ),
        ),
    ),
    (
        "software",
        "restart_in_place",
        "a checkpoint is not whole",
        (
            ("StrongResearch/isc-demos/issues/3", "EOFError: Ran out of input"),
            ("Puzer/stylegan-encoder/issues/17", "_pickle.UnpicklingError: invalid load key, '<'."),
            (
                "SvipRepetitionCounting/TransRAC/issues/4",
                "_pickle.UnpicklingError: invalid load key, '\\xef'.",
            ),
            ("arimousa/DDAD/issues/33", "_pickle.UnpicklingError: invalid load key, '\\x9e'."),
        ),
    ),
    (
        "user",
        "stop_and_tell_user",
        "a file of the data set is damaged",
        (
            (
                "Guanghan/lighttrack/issues/13",
                "posetrack_train_data_negative.pickle\nEOFError: Ran out of input",
            ),
        ),
    ),
    (
        "user",
        "stop_and_tell_user",
        "the program was given another file",
        (
            (
                "victoresque/pytorch-template/issues/111",
                "_pickle.UnpicklingError: invalid load key, '{'.",
            ),
        ),
    ),
    (
        "user",
        "stop_and_tell_user",
        "a directory may not be written",
        (
            (
                "salesforce/decaNLP/issues/7",
                "PermissionError: [Errno 13] Permission denied: '/runtime'",
            ),
            (
                "vzhong/e3/issues/5",
                "PermissionError: [Errno 13] Permission denied: '/opt/code/save/default-entail/train.log'",
            ),
            (
                "OpenNeuroOrg/openneuro/issues/79",
                "PermissionError: [Errno 13] Permission denied: '/output/data/derivatives'",
            ),
        ),
    ),
    (
        "user",
        "stop_and_tell_user",
        "the device's memory is too small",
        (
            (
                "pytorch/xla/issues/2569",
                "2020-10-22 02:48:58 10.128.0.33 [3]   (1) Resource exhausted: Attempting to allocate 180.59M. That was not possible. There are 142.58M free.; (0x3x0_HBM1)",
            ),
            (
                "pytorch/xla/issues/8020",
                "RuntimeError: Bad StatusOr access: RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate 196.00M. That was not possible. There are 134.44M free.; (1x0x0_HBM0)",
            ),
        ),
    ),
    (
        "unknown",
        "observe",
        "only what follows from another fault",
        (
            (
                "pytorch/xla/issues/3122",
                "RuntimeError: tensorflow/compiler/xla/xla_client/xrt_computation_client.cc:415 : Check failed: session->session()->Run(session_work->feed_inputs, session_work->outputs_handles, &outputs) == ::tensorflow::Status::OK() (Aborted: Session ab7644a8c1cef902 is not found. vs. OK)",
            ),
        ),
    ),
    (
        "hardware",
        "isolate_node",
        "a disk of an array fails",
        (
            (
                "osm-fr/infrastructure/issues/482",
                "  pool: local-zfs\n state: DEGRADED\nstatus: One or more devices are faulted in response to persistent errors.",
            ),
            (
                "DoESLiverpool/somebody-should/issues/2185",
                "    ata-WDC_WD10EZEX-00KUWA0_WD-WCC1S6899069-part1  FAULTED     16     4     0  too many errors",
            ),
            (
                "holderdeord/hdo-site/issues/404",
                "A DegradedArray event had been detected on md device /dev/md/1.",
            ),
            (
                "TritonDataCenter/smartos-live/issues/259",
                "  pool: zones\n state: DEGRADED\nstatus: One or more devices has experienced an unrecoverable error.  An\n        attempt was made to correct the error.",
            ),
        ),
    ),
    (
        "user",
        "stop_and_tell_user",
        "a kernel reads what is not its own",
        (
            (
                "ROCm/legacy-rocm-build/issues/1535",
                "Memory access fault by GPU node-2 (Agent handle: 0x55fea5592860) on address 0x7fc133800000. Reason: Page not present or supervisor privilege.",
            ),
            (
                "ROCm/hcc/issues/807",
                "Memory access fault by GPU node-1 (Agent handle: 0x236ceb0) on address 0x1000. Reason: Page not present or supervisor privilege.",
            ),
        ),
    ),
    (
        "user",
        "stop_and_tell_user",
        "the credentials are missing",
        (
            (
                "Physical-Intelligence/openpi/issues/686",
                "botocore.exceptions.NoCredentialsError: Unable to locate credentials",
            ),
        ),
    ),
    (
        "network",
        "restart_in_place",
        "a server does not answer",
        (
            (
                "aws/aws-cli/issues/5460",
                'botocore.exceptions.EndpointConnectionError: Could not connect to the endpoint URL: "http://169.254.169.254/latest/meta-data/placement/availability-zone/"',
            ),
            (
                "aws/aws-cli/issues/904",
                "botocore.vendored.requests.packages.urllib3.exceptions.ConnectTimeoutError: (<botocore.HTTPConnectionPool object at 0x7fd914967fd0>, 'Connection to 169.254.169.254 timed out. (connect timeout=1)')",
            ),
        ),
    ),
    (
        "user",
        "stop_and_tell_user",
        "the loss is no number any more",
        (
            (
                "Junjue-Wang/FactSeg/issues/6",
                "Warning: NaN or Inf found in input tensor.\nGradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 2.0237e-320",
            ),
            (
                "NVIDIA/apex/issues/834",
                "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 0.5\nGradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 0",
            ),
            (
                "ymcui/Chinese-LLaMA-Alpaca/issues/534",
                "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.",
            ),
        ),
    ),
    (
        "software",
        "isolate_node",
        "the node's runtime is not set up for GPUs",
        (
            (
                "NVIDIA/gpu-operator/issues/549",
                'Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get sandbox runtime: no runtime for "nvidia" is configured',
            ),
            (
                "aws/amazon-vpc-cni-k8s/issues/3104",
                "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to create containerd task: failed to create shim task: OCI runtime create failed: unable to retrieve OCI runtime error: fork/exec /usr/bin/nvidia-container-runtime: no such file or directory: unknown",
            ),
        ),
    ),
    (
        "platform",
        "restart_in_place",
        "the node could not start the pod",
        (
            (
                "NVIDIA/gpu-operator/issues/549#2",
                'Failed to create pod sandbox: rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing dial unix /run/containerd/containerd.sock: connect: connection refused"',
            ),
        ),
    ),
    (
        "user",
        "stop_and_tell_user",
        "the token had expired",
        (
            (
                "awslabs/s3-connector-for-pytorch/issues/194",
                "2024-03-22T23:33:59.252482Z TRACE awscrt::http-stream: id=0x101811ac0: Incoming response status: 400 (Bad Request).",
            ),
        ),
    ),
)
