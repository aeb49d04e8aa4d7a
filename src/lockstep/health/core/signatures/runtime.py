"""What programs, their runtimes and their containers say of faults, a row each."""

# A row is one line, to be searched for.
# ruff: noqa: E501, S108

from __future__ import annotations

from typing import Final

from lockstep.health.core.signature import Signature
from lockstep.health.core.signatures import verdicts as v

_MISSING: Final[tuple[Signature, ...]] = (
    Signature(
        r"No module named '?([\w.]+)'?",
        v.USER_STOP(0.93, "static"),
        "the image lacks the Python module {}: add it to the image, or install it in the command",
    ),
    Signature(
        r"can't open file '?([^':]+)'?",
        v.USER_STOP(0.95, "static"),
        "the script {} is not in the container: check the path, the working directory and the mounts",
    ),
    Signature(
        r"(\S+): (?:command )?not found\b|(?:未找到命令|找不到命令)",
        v.USER_STOP(0.93, "static"),
        "the command was not found: install it in the image, or give its whole path",
    ),
    Signature(
        r'exec: "([^"]+)": .*(?:not found|no such file|permission denied)|executable file not found in \$PATH',
        v.USER_STOP(0.93, "static"),
        "the container's command cannot be run: install it in the image, or correct the command",
    ),
    Signature(
        r"[Ee]xec format error",
        v.USER_STOP(0.9, "static"),
        "the program is built for another processor: build the image for this one",
    ),
    Signature(
        r"InvalidImageName|ErrImageNeverPull|manifest unknown|manifest for \S+ not found|pull access denied|repository does not exist|unauthorized: (?:authentication|access)|denied: requested access|reading manifest|no basic auth credentials|failed to resolve reference .*not found|error pulling image configuration",
        v.USER_STOP(0.88, "static"),
        "the image cannot be pulled: check its name, its tag and the pull secret",
    ),
    Signature(
        r"toomanyrequests|registry.*(?:i/o timeout|TLS handshake timeout|timeout awaiting|503)|Failed to pull image.*(?:timeout|EOF|503|connection)",
        v.NETWORK_RESTART(0.7),
        "the registry of images does not answer",
    ),
    Signature(
        r"ImagePullBackOff|ErrImagePull|CreateContainerConfigError",
        v.USER_STOP(0.75),
        "the image or the pod's configuration cannot be used: check the names of the image, config maps and secrets",
    ),
    Signature(
        r"(?:lib\S+\.so\S*): cannot open shared object file|OSError: lib\S+\.so",
        v.USER_STOP(0.85),
        "the image lacks a shared library: install it in the image",
    ),
    Signature(
        r"SyntaxError|IndentationError|TabError",
        v.USER_STOP(0.95, "static"),
        "the program is no valid Python",
    ),
    Signature(
        r"RepositoryNotFound|GatedRepo|gated repo|is not a valid model identifier|401 Client Error|403 Client Error|EntryNotFoundError|is not a local folder|Access to model \S+ is restricted|NoCredentialsError|AccessDenied|InvalidAccessKeyId|NoSuchBucket|CredentialsError|AuthenticationFailed|ExpiredToken|[Cc]an't load tokenizer|does not appear to have a file named|NoSuchKey|RevisionNotFound|Cannot access gated",
        v.USER_STOP(0.9),
        "the model or data set is not there, or the token may not read it",
    ),
    Signature(
        r"Retrying \(Retry|[Ww]ill retry|[Rr]etrying (?:in|after) \d",
        v.NETWORK_RESTART(0.4, "weak"),
        "a server outside of the job did not answer at once",
    ),
    Signature(
        r"Max retries exceeded|(?:50[0234]|429) (?:Server|Client) Error|EndpointConnectionError|\(SlowDown\)|ServiceUnavailable|couldn't connect to|FSTimeoutError|IncompleteRead|NewConnectionError|ReadTimeout(?:Error)?\b|ConnectTimeout|RemoteDisconnected|ChunkedEncodingError|LocalEntryNotFound|SSLError|requests\.exceptions\.ConnectionError",
        v.NETWORK_RESTART(0.65),
        "a server outside of the job does not answer",
    ),
)

_ENDS: Final[tuple[Signature, ...]] = (
    Signature(
        r"exit code:? 12[67]\b",
        v.USER_STOP(0.92, "static"),
        "the command was not found or cannot be run: install it in the image, or give its whole path",
    ),
    Signature(
        r"working directory (\S+): .*(?:no such file|not a directory|permission denied)",
        v.USER_STOP(0.93, "static"),
        "the working directory {} is not in the container: correct it, or mount it",
    ),
    Signature(
        r"\(signal 7\)|(?:exit(?:ed)?(?: with)? ?(?:status )?code:?|exitcode:?|return code =) ?(?:135|-7)\b",
        v.USER_STOP(0.7, "weak"),
        "a rank ended with a bus error (signal 7): mostly /dev/shm or a mapped file is too small",
    ),
    Signature(
        r"\(signal (?:11|6|4|8)\)|exit code:? 13[2469]\b|(?:exit(?:ed)?(?: with)? ?(?:status )?code\s*:?|return code =) ?(?:-(?:11|4|8)|13[2469])\b",
        v.SOFTWARE_RESTART(0.45, "weak"),
        "a rank crashed, and its log does not tell why",
    ),
    Signature(
        r"\(signal 15\)|exit code:? 143\b",
        v.UNKNOWN_OBSERVE(0.3, "cascade"),
        "a rank was asked to end (signal 15)",
    ),
)

_MEMORY: Final[tuple[Signature, ...]] = (
    Signature(
        r"(?:CUDA|HIP|NPU) (?:error: )?out of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|cudaMalloc failed: out of memory|No available memory for the cache blocks|KV cache.*(?:larger|not enough|exceed|insufficient)|larger than the (?:available|maximum number of tokens).*KV cache|Free memory on device .* less than|R(?:ESOURCE_EXHAUSTED|esource exhausted)|OutOfResources|failed to allocate .* (?:bytes )?(?:from|on) device|torch\.(?:cuda\.)?OutOfMemoryError|CUDA failed with error out of memory|insufficient memory.*GPU|显存不足",
        v.USER_STOP(0.9),
        "the GPU's memory is too small for the program",
    ),
    Signature(
        r"std::bad_alloc|\bMemoryError\b|Errno 12\b|[Uu]nable to mmap \d+ bytes|DefaultCPUAllocator|Cannot allocate memory|Unable to allocate .* for an array|running low on memory|ObjectStoreFullError|Out of memory|out of memory|内存不足|无法分配内存",
        v.USER_STOP(0.85),
        "the host's memory is too small for the program",
    ),
    Signature(
        r"Error while creating shared memory|unable to (?:open|write to|mmap) (?:shared memory|file .*/torch_)|/dev/shm.*(?:[Nn]o space|full|too small|insufficient)|out of shared memory|shared memory.*(?:No space|not enough|limit)",
        v.USER_STOP(0.88),
        "/dev/shm is too small",
    ),
)

_PROGRAM: Final[tuple[Signature, ...]] = (
    Signature(
        r"(?:exit(?:ed)?(?: with)? ?(?:status )?code\s*:?|return code =) ?(?:-9|137)\b|SIGKILL|[Ss]ignal 9\b|exit code:? 137|Exit Code: 9\b|code 137|(?:^|\s)Killed$|已杀死",
        v.UNKNOWN_RESTART(0.4, "weak"),
        "a rank was killed (signal 9, SIGKILL): the kernel's log or the pod's OOMKilled tells whether for want of memory",
    ),
    Signature(
        r"misaligned address|invalid resource handle|invalid configuration argument|too many resources requested|unsupported toolchain|invalid device function|CUDA error: invalid argument|PTX JIT compil|sm_\d+ is not compatible|cudaErrorIllegalAddress|CUDA_ERROR_ILLEGAL_ADDRESS|非法内存访问",
        v.USER_STOP(0.82),
        "a kernel of the program does not fit this GPU or its arguments",
    ),
    Signature(
        r"busy or unavailable|all CUDA-capable devices are busy",
        v.PLATFORM_RESTART(0.7),
        "another process holds the GPU",
    ),
    Signature(
        r"No CUDA GPUs are available|no CUDA-capable device|CUDA_ERROR_NO_DEVICE|HIP GPUs are available|Found no NVIDIA driver|Torch not compiled with CUDA|libcuda\.so|Failed to infer device type|no GPU (?:was )?(?:found|detected)",
        v.USER_STOP(0.75),
        "the container has no GPU: ask for one, and use an image with CUDA",
    ),
    Signature(
        r"cudaErrorLaunchFailure|CUDA_ERROR_LAUNCH_FAILED|CUDA error: unknown error|CUBLAS_STATUS_(?:EXECUTION_FAILED|INTERNAL_ERROR)|cudaErrorUnknown|an internal operation failed",
        v.SOFTWARE_RESTART(0.5),
        "a kernel died on the GPU",
    ),
    Signature(
        r"Error building extension|Failed building wheel|metadata-generation-failed|No matching distribution found|Could not find a version that|ptxas fatal|ninja: build stopped|nvcc fatal|CUDA_HOME environment variable is not set|The detected CUDA version .* mismatches",
        v.USER_STOP(0.9),
        "an extension cannot be compiled in this image",
    ),
    Signature(
        r"numpy\.(?:dtype size changed|core\.multiarray failed)|version .* (?:is )?incompatible|has no attribute|requires cuda extensions|packages that were not found in your environment|cannot import name|got an unexpected keyword argument|positional argument|not supported between instances|is not subscriptable|object is not callable",
        v.USER_STOP(0.88),
        "the program does not fit the versions of its libraries",
    ),
    Signature(
        r"torch\.distributed\.elastic\.multiprocessing\.errors\.(?:ChildFailedError|error_handler)|[Cc]hildFailedError|ProcessExitedException|ProcessRaisedException|CalledProcessError|returned non-zero exit status|SignalException|KeyboardInterrupt|[Rr]eceived (?:signal )?(?:SIGTERM|15\b)|Session \w+ is not found|closing signal SIGTERM|mpirun (?:noticed|detected) that|BAD TERMINATION|Primary job +terminated|srun: error: .*: (?:tasks? |task\d)|srun: Job step aborted|CANCELLED AT \S+ \*\*\*|CrashLoopBackOff|BackOff.*restarting failed container|exited with exit code [1-9]|process .* terminated with exit code|died unexpectedly|Failed core proc|WorkerCrashedError|ActorDiedError|RayActorError|EngineDeadError|Engine core initialization failed|EngineCore.* died|killing subprocess|launch\.py:\d+:(?:sigkill|main)|error_file: <N/A>|A worker died or was killed|Detected failed tasks|Child process \d+ died|Task exited with return code",
        v.UNKNOWN_OBSERVE(0.3, "cascade"),
        "a process of the job failed",
    ),
    Signature(
        r"safetensors.*(?:Error|error)|HeaderTooLarge|UnpicklingError|unexpected EOF|failed finding central directory|BadZipFile|not a ZIP archive|file in archive is not in a subdirectory|checkpoint.*(?:corrupt|incomplete|damaged)|CheckpointException|Ran out of input",
        v.SOFTWARE_RESTART(0.78),
        "a checkpoint is not whole",
    ),
    Signature(
        r"image file is truncated|cannot identify image file|tarfile\.ReadError|ArrowInvalid|JSONDecodeError|zlib\.error|truncated file: eof|UnicodeDecodeError|DatasetGenerationError",
        v.USER_STOP(0.82),
        "a file of the data set is damaged",
    ),
    Signature(
        r"(?:loss|grad\w*|norm)\W+(?:is |was |= ?|: ?)?(?:nan|NaN|NAN|inf)\b|(?:NaN|nan|Inf) (?:loss|detected|found|in )|OverflowError|Loss is NaN|found NaN|non-finite|loss scale .*minimum|[Ll]oss (?:is|became|=|:) ?(?:nan|NaN|inf)|FloatingPointError|loss scale to (?:0\b|0\.\d|\d(?:\.\d+)?e-)",
        v.USER_STOP(0.75),
        "the loss is no number any more",
    ),
    Signature(
        r"has parameters that were not used|marked (?:as )?ready twice|Expected to mark a variable ready only once|leaf variable .* in-place|modified by an inplace operation|does not require grad|world[_ ]size .*(?:not divisible|must be)|(?:not |must be )divisible by|is not (?:equal|divisible)|micro_batch_per_gpu|There are not enough slots|size of tensor|(?:Sizes|shapes?) .*(?:do(?:es)? not|mismatch)|shape mismatch|expected scalar type|dtype .*mismatch|mat1 and mat2|Expected .* but got|must match|out of (?:bounds|range)",
        v.USER_STOP(0.85),
        "the program or its settings do not fit together",
    ),
    Signature(
        r"[Ss]egmentation fault|段错误|SIGSEGV|Signal: 11|SIGILL|Illegal instruction|SIGFPE|double free|corrupted (?:size|double|unsorted)|free\(\): invalid|malloc\(\): |munmap_chunk|stack smashing|terminate called",
        v.SOFTWARE_RESTART(0.55, "weak"),
        "a rank crashed",
    ),
)


RUNTIME: Final[tuple[Signature, ...]] = (*_MISSING, *_ENDS, *_MEMORY, *_PROGRAM)
