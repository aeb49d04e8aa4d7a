/* A container's program for tests: does with CUDA's driver what its arguments say, one by one.
 *
 *   alloc MIB WAY    plain async pool managed pitch array mip vmm nodes; says `alloc WAY RESULT`
 *   free             the newest of them
 *   info             says `info FREE TOTAL` in MiB
 *   run NAME SECONDS launches the kernel all that time; says `ran NAME LAUNCHES`
 *   graph NAME KERNELS SECONDS   the same with a graph of so many
 *   copy BYTES SECONDS           the same with copies to the card
 *   steps NAME COLLECTIVE SECONDS   both by turns all that time; says `steps COUNT`
 *   latency NAME     launches once and waits; says `latency NANOSECONDS`
 *   cost             says `cost ASKING LAUNCHING`, nanoseconds of the host for a call
 *   load BYTES SECONDS           the same with copies that the host waits for
 *   line             waits for a line of its standard input
 *   device N, fork, exec ARG..., wait SECONDS, sync, hold */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "calls.h"

typedef struct { char way[16]; uint64_t at, mapped; size_t bytes; } Held;
static Held held[65536];
static int count, device;
static CUcontext context;
static CUmodule module;
static CUstream stream;

static const char *name_of(CUresult result) {
    const char *name = NULL;
    cuGetErrorName(result, &name);
    return name ? name : "CUDA_ERROR_UNKNOWN";
}
static void must(CUresult result, const char *what) {
    if (!result) return;
    printf("%s %s\n", what, name_of(result));
    fflush(stdout);
    exit(3);
}

static uint64_t now(void) {
    static uint64_t (*virtual_now)(void);
    static int looked;
    if (!looked++) virtual_now = (uint64_t (*)(void))dlsym(RTLD_DEFAULT, "lockstepNow");
    const char *path = getenv("LOCKSTEP_DRIVER");
    if (!virtual_now && path) {
        void *driver = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
        if (driver) virtual_now = (uint64_t (*)(void))dlsym(driver, "lockstepNow");
    }
    if (virtual_now) return virtual_now();
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

static void pause_for(double seconds) {
    static void (*virtual_wait)(const uint32_t *, uint32_t, uint64_t, uint64_t);
    const char *path = getenv("LOCKSTEP_DRIVER");
    void *driver = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : RTLD_DEFAULT;
    if (!virtual_wait && driver) virtual_wait = (void (*)(const uint32_t *, uint32_t, uint64_t, uint64_t))dlsym(driver, "lockstepWait");
    uint64_t until = now() + (uint64_t)(seconds * 1e9);
    while (now() < until) {
        if (virtual_wait) virtual_wait(NULL, 0, until, 0);
        else usleep((useconds_t)(seconds * 1e6));
    }
}

static CUresult allocate(const char *way, size_t bytes, Held *out) {
    CUdeviceptr at = 0;
    CUhandle handle = 0;
    CUarray array = NULL;
    size_t pitch;
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    CUmemPoolProps pooled = {.type = 1, .location = {1, device}};
    CUmemAllocationProp physical = {.type = 1, .location = {1, device}};
    CUarrayShape flat = {bytes >> 10, 256, 0x20, 1};
    CUarray3DShape deep = {bytes >> 10, 256, 0, 0x20, 1, 0};
    static CUmemoryPool pool;
    if (!strcmp(way, "plain")) result = cuMemAlloc_v2(&at, bytes);
    if (!strcmp(way, "managed")) result = cuMemAllocManaged(&at, bytes, 1);
    if (!strcmp(way, "async")) result = cuMemAllocAsync(&at, bytes, stream);
    if (!strcmp(way, "pitch")) result = cuMemAllocPitch_v2(&at, &pitch, bytes >> 10, 1024, 4);
    if (!strcmp(way, "array")) result = cuArrayCreate_v2(&array, &flat);
    if (!strcmp(way, "mip")) result = cuMipmappedArrayCreate(&array, &deep, 1);
    if (!strcmp(way, "pool")) {
        if (!pool) must(cuMemPoolCreate(&pool, &pooled), "pool");
        result = cuMemAllocFromPoolAsync(&at, bytes, pool, stream);
    }
    if (!strcmp(way, "vmm") && !(result = cuMemCreate(&handle, bytes, &physical, 0))) {
        must(cuMemAddressReserve(&out->mapped, bytes, 0, 0, 0), "reserve");
        must(cuMemMap(out->mapped, bytes, 0, handle, 0), "map");
        /* From here on the mapping alone holds the memory. */
        must(cuMemRelease(handle), "release");
        at = handle;
    }
    if (!strcmp(way, "nodes")) {
        /* Half by each of two nodes; what is instantiated stays when the graph goes. */
        CUallocNode half = {.pool = pooled, .bytes = bytes / 2};
        CUgraph graph;
        CUgraphExec exec = NULL;
        must(cuGraphCreate(&graph, 0), "graph");
        for (int node = 0; node < 2; node++) must(cuGraphAddMemAllocNode(NULL, graph, NULL, 0, &half), "node");
        result = cuGraphInstantiateWithFlags(&exec, graph, 0);
        must(cuGraphDestroy(graph), "destroy");
        at = (uintptr_t)exec;
    }
    out->at = array ? (uintptr_t)array : at;
    out->bytes = bytes;
    snprintf(out->way, sizeof out->way, "%s", way);
    return result;
}

static CUresult give(Held *one) {
    if (!strcmp(one->way, "async") || !strcmp(one->way, "pool")) return cuMemFreeAsync(one->at, stream);
    if (!strcmp(one->way, "array")) return cuArrayDestroy((CUarray)one->at);
    if (!strcmp(one->way, "mip")) return cuMipmappedArrayDestroy((CUarray)one->at);
    if (!strcmp(one->way, "nodes")) return cuGraphExecDestroy((CUgraphExec)one->at);
    if (!strcmp(one->way, "vmm")) return cuMemUnmap(one->mapped, one->bytes);
    return cuMemFree_v2(one->at);
}

static CUfunction kernel(const char *name) {
    CUfunction found;
    if (!module) must(cuModuleLoadData(&module, ""), "module");
    must(cuModuleGetFunction(&found, module, name), "function");
    return found;
}
static void launch(CUfunction f) { must(cuLaunchKernel(f, 132, 1, 1, 128, 1, 1, 0, stream, NULL, NULL), "launch"); }

static void begin(void) {
    CUdevice chosen;
    must(cuInit(0), "init");
    must(cuDeviceGet(&chosen, device), "device");
    must(cuCtxCreate_v2(&context, 0, chosen), "context");
    must(cuStreamCreate(&stream, 0), "stream");
}

int main(int argc, char **argv) {
    if (argc > 2 && !strcmp(argv[1], "device")) device = atoi(argv[2]);
    begin();
    for (int i = 1; i < argc; i++) {
        const char *what = argv[i];
        if (!strcmp(what, "alloc")) {
            size_t bytes = (size_t)(atof(argv[i + 1]) * 1048576);
            CUresult result = allocate(argv[i + 2], bytes, &held[count]);
            printf("alloc %s %s\n", argv[i + 2], name_of(result));
            count += result == 0;
            i += 2;
        } else if (!strcmp(what, "fill")) {
            /* As many pieces as there are, in all ways by turns. */
            static const char *const ways[] = {"plain", "async", "pool", "managed", "pitch", "array", "mip", "vmm", "nodes"};
            size_t bytes = (size_t)(atof(argv[++i]) * 1048576);
            int refused = 0;
            for (unsigned turn = (unsigned)getpid(); refused < 9 && count < 65536; turn++) {
                if (!allocate(ways[turn % 9], bytes, &held[count])) count++, refused = 0;
                else refused++;
            }
            printf("filled %d\n", count);
        } else if (!strcmp(what, "free")) {
            if (count) must(give(&held[--count]), "free");
        } else if (!strcmp(what, "info")) {
            size_t unused, total;
            must(cuMemGetInfo_v2(&unused, &total), "info");
            printf("info %zu %zu\n", unused >> 20, total >> 20);
        } else if (!strcmp(what, "run")) {
            CUfunction f = kernel(argv[i + 1]);
            uint64_t launches = 0, until = now() + (uint64_t)(atof(argv[i + 2]) * 1e9);
            for (; now() < until; launches++) launch(f);
            printf("ran %s %llu\n", argv[i + 1], (unsigned long long)launches);
            i += 2;
        } else if (!strcmp(what, "graph")) {
            CUfunction f = kernel(argv[i + 1]);
            CUgraph graph;
            CUgraphExec exec;
            must(cuStreamBeginCapture_v2(stream, 0), "capture");
            for (int k = 0; k < atoi(argv[i + 2]); k++) launch(f);
            must(cuStreamEndCapture(stream, &graph), "captured");
            must(cuGraphInstantiateWithFlags(&exec, graph, 0), "instantiate");
            uint64_t launches = 0, until = now() + (uint64_t)(atof(argv[i + 3]) * 1e9);
            for (; now() < until; launches++) must(cuGraphLaunch(exec, stream), "graph");
            printf("ran graph %llu\n", (unsigned long long)launches);
            i += 3;
        } else if (!strcmp(what, "load")) {
            size_t bytes = (size_t)atoll(argv[i + 1]);
            uint64_t launches = 0, until = now() + (uint64_t)(atof(argv[i + 2]) * 1e9);
            for (; now() < until; launches++) must(cuMemcpyHtoD_v2(0, NULL, bytes), "load");
            printf("ran load %llu\n", (unsigned long long)launches);
            i += 2;
        } else if (!strcmp(what, "copy")) {
            size_t bytes = (size_t)atoll(argv[i + 1]);
            uint64_t launches = 0, until = now() + (uint64_t)(atof(argv[i + 2]) * 1e9);
            for (; now() < until; launches++) must(cuMemcpyHtoDAsync_v2(0, NULL, bytes, stream), "copy");
            printf("ran copy %llu\n", (unsigned long long)launches);
            i += 2;
        } else if (!strcmp(what, "steps")) {
            CUfunction own = kernel(argv[i + 1]), together = kernel(argv[i + 2]);
            uint64_t steps = 0, until = now() + (uint64_t)(atof(argv[i + 3]) * 1e9);
            for (; now() < until; steps++) {
                launch(own);
                launch(together);
                must(cuStreamSynchronize(stream), "sync");
            }
            printf("steps %llu\n", (unsigned long long)steps);
            i += 3;
        } else if (!strcmp(what, "latency")) {
            CUfunction f = kernel(argv[++i]);
            uint64_t from = now();
            launch(f);
            must(cuStreamSynchronize(stream), "sync");
            printf("latency %llu\n", (unsigned long long)(now() - from));
        } else if (!strcmp(what, "cost")) {
            /* Of a launch, and of a call that only asks; the best batch is the least disturbed. */
            CUfunction f = kernel("busy_1ns");
            uint64_t best[2] = {UINT64_MAX, UINT64_MAX};
            for (int batch = 0; batch < 400; batch++)
                for (int which = 0; which < 2; which++) {
                    struct timespec a, b;
                    CUdevice current;
                    clock_gettime(CLOCK_MONOTONIC, &a);
                    for (int k = 0; k < 1000; k++)
                        if (which) launch(f);
                        else cuCtxGetDevice(&current);
                    clock_gettime(CLOCK_MONOTONIC, &b);
                    uint64_t took = (uint64_t)((b.tv_sec - a.tv_sec) * 1000000000LL + b.tv_nsec - a.tv_nsec);
                    if (took < best[which]) best[which] = took;
                }
            printf("cost %.1f %.1f\n", (double)best[0] / 1000, (double)best[1] / 1000);
        } else if (!strcmp(what, "fork")) {
            /* The rest is done by a child of its own; the parent waits. */
            pid_t child = fork();
            if (child) {
                waitpid(child, NULL, 0);
                return 0;
            }
            count = 0;
            begin();
        } else if (!strcmp(what, "exec")) {
            argv[i] = argv[0];
            execv("/proc/self/exe", argv + i);
        } else if (!strcmp(what, "device")) {
            i++;
        } else if (!strcmp(what, "wait")) {
            pause_for(atof(argv[++i]));
        } else if (!strcmp(what, "sync")) {
            must(cuCtxSynchronize(), "sync");
        } else if (!strcmp(what, "line")) {
            for (int c = getchar(); c != '\n' && c != EOF;) c = getchar();
        } else if (!strcmp(what, "hold")) {
            printf("holding\n");
            fflush(stdout);
            for (;;) pause();
        } else {
            fprintf(stderr, "tenant: %s is unknown\n", what);
            return 2;
        }
        fflush(stdout);
    }
    return 0;
}
