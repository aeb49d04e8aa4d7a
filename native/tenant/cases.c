/* One case of a legal program a run, for tests: what it does and says is the same behind the front,
 * but for the size of the card. `cases WAY CASE`; the way is how it finds the driver's calls:
 * linked, dlsym, dlvsym, deepbind, or proc (cuGetProcAddress). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../cuda/types.h"

#define MIB (1ull << 20)
/* Each call is a pointer that the way fills: by symbol, or by base name for cuGetProcAddress. */
#define CALLS(X)                                                                                              \
    X(cuInit, cuInit, (unsigned)) X(cuDeviceGet, cuDeviceGet, (CUdevice *, int))                              \
    X(cuCtxCreate_v2, cuCtxCreate, (CUcontext *, unsigned, CUdevice)) X(cuCtxDestroy_v2, cuCtxDestroy, (CUcontext)) \
    X(cuCtxSetCurrent, cuCtxSetCurrent, (CUcontext)) X(cuCtxSynchronize, cuCtxSynchronize, (void))            \
    X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                            \
    X(cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxRelease, (CUdevice))                                    \
    X(cuDevicePrimaryCtxReset_v2, cuDevicePrimaryCtxReset, (CUdevice))                                        \
    X(cuMemAlloc_v2, cuMemAlloc, (CUdeviceptr *, size_t)) X(cuMemFree_v2, cuMemFree, (CUdeviceptr))           \
    X(cuMemGetInfo_v2, cuMemGetInfo, (size_t *, size_t *))                                                    \
    X(cuMemAllocAsync, cuMemAllocAsync, (CUdeviceptr *, size_t, CUstream))                                    \
    X(cuMemFreeAsync, cuMemFreeAsync, (CUdeviceptr, CUstream))                                                \
    X(cuStreamCreate, cuStreamCreate, (CUstream *, unsigned)) X(cuStreamDestroy_v2, cuStreamDestroy, (CUstream)) \
    X(cuStreamSynchronize, cuStreamSynchronize, (CUstream))                                                   \
    X(cuModuleLoadData, cuModuleLoadData, (CUmodule *, const void *))                                         \
    X(cuModuleGetFunction, cuModuleGetFunction, (CUfunction *, CUmodule, const char *))                       \
    X(cuLaunchKernel, cuLaunchKernel, (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
                                       unsigned, CUstream, void **, void **))                                 \
    X(cuMemsetD8Async, cuMemsetD8Async, (CUdeviceptr, unsigned char, size_t, CUstream))                       \
    X(cuStreamBeginCapture_v2, cuStreamBeginCapture, (CUstream, int))                                         \
    X(cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph, (CUstream, CUgraph, const void *, const void *, size_t, int)) \
    X(cuStreamEndCapture, cuStreamEndCapture, (CUstream, CUgraph *)) X(cuGraphCreate, cuGraphCreate, (CUgraph *, unsigned)) \
    X(cuGraphGetNodes, cuGraphGetNodes, (CUgraph, CUgraphNode *, size_t *)) X(cuGraphClone, cuGraphClone, (CUgraph *, CUgraph)) \
    X(cuGraphAddMemAllocNode, cuGraphAddMemAllocNode, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUallocNode *)) \
    X(cuGraphAddMemFreeNode, cuGraphAddMemFreeNode, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUdeviceptr)) \
    X(cuGraphAddChildGraphNode, cuGraphAddChildGraphNode, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUgraph)) \
    X(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, (CUgraphExec *, CUgraph, unsigned long long)) \
    X(cuGraphLaunch, cuGraphLaunch, (CUgraphExec, CUstream)) X(cuGraphExecDestroy, cuGraphExecDestroy, (CUgraphExec)) \
    X(cuGraphDestroy, cuGraphDestroy, (CUgraph))

#define LINKED(symbol, base, parameters) extern CUresult linked_##symbol parameters __asm__(#symbol);
#define POINTER(symbol, base, parameters) static CUresult(*symbol) parameters __asm__("found_" #symbol);
CALLS(LINKED)
CALLS(POINTER)

static void find(const char *way) {
    int flags = RTLD_NOW | (!strcmp(way, "deepbind") ? RTLD_DEEPBIND : 0);
    void *library = dlopen("libcuda.so.1", flags);
    CUresult (*proc)(const char *, void **, int, uint64_t, int *);
    *(void **)&proc = dlsym(library, "cuGetProcAddress_v2");
    int linked = !strcmp(way, "linked"), by_proc = !strcmp(way, "proc"), versioned = !strcmp(way, "dlvsym");
#define FOUND(name, base, parameters)                                                       \
    if (linked) name = linked_##name;                                                       \
    else if (by_proc) proc(#base, (void **)&name, 12030, 0, NULL);                          \
    else if (!versioned || !(*(void **)&name = dlvsym(library, #name, "libcuda.so.1"))) /* none has versions */ \
        *(void **)&name = dlsym(library, #name);                                            \
    if (!name) { printf("%s is not found by %s\n", #name, way); exit(4); }
    CALLS(FOUND)
}

static CUcontext context;
static CUstream one, other;
static CUmodule module;

static CUfunction kernel(const char *name) {
    CUfunction found = NULL;
    if (!module) cuModuleLoadData(&module, "");
    if (cuModuleGetFunction(&found, module, name)) printf("no kernel %s\n", name);
    return found;
}
static int launch(const char *name, CUstream stream) {
    return cuLaunchKernel(kernel(name), 132, 1, 1, 128, 1, 1, 0, stream, NULL, NULL);
}
static void say(const char *what, int result) { printf("%s %d\n", what, result); fflush(stdout); }
static int take(size_t mib) { CUdeviceptr at; return cuMemAlloc_v2(&at, mib * MIB); }
static void info(void) {
    size_t unused, total;
    cuMemGetInfo_v2(&unused, &total);
    printf("used %zu\n", (size_t)((total - unused) / MIB));
    fflush(stdout);
}
static void begin(void) { cuInit(0); cuDevicePrimaryCtxRetain(&context, 0); cuCtxSetCurrent(context); cuStreamCreate(&one, 1); cuStreamCreate(&other, 1); }

/* --- work that waits for later work --- */

/* A receive is posted; the last of much other work sets its sender free. */
static void spin(void) {
    launch("spin_1", one);
    for (int i = 0; i < 50; i++) launch("busy_100us", other);
    launch("flag_1", other);
    say("done", cuStreamSynchronize(one));
}
/* Several, posted before anything else, each set free by the work after it. */
static void pipeline(void) {
    char name[32];
    CUstream streams[8];
    for (int i = 0; i < 8; i++) {
        cuStreamCreate(&streams[i], 1);
        snprintf(name, sizeof name, "spin_%d", i + 2);
        launch(name, streams[i]);
    }
    for (int i = 0; i < 8; i++) {
        launch("busy_1ms", other);
        snprintf(name, sizeof name, "flag_%d", i + 2);
        launch(name, other);
    }
    for (int i = 0; i < 8; i++) cuStreamSynchronize(streams[i]);
    say("done", 0);
}
/* A kernel that stays; the host waits for other work again and again, and ends it last. */
static void persistent(void) {
    launch("spin_1", one);
    for (int i = 0; i < 100; i++) {
        launch("busy_100us", other);
        cuStreamSynchronize(other);
    }
    launch("flag_1", other);
    say("done", cuStreamSynchronize(one));
}

/* --- contexts that end --- */

static void reset(void) {
    for (int i = 0; i < 8; i++) launch("busy_100us", one);
    say("take", take(80));
    say("reset", cuDevicePrimaryCtxReset_v2(0));
    info();
    begin();
    say("take", take(80));
    for (int i = 0; i < 40; i++) launch("busy_100us", one);
    say("end", cuCtxSynchronize());
}
static void destroy(void) {
    for (int i = 0; i < 3; i++) {
        CUcontext own;
        cuCtxCreate_v2(&own, 0, 0);
        cuStreamCreate(&one, 1);
        for (int k = 0; k < 8; k++) launch("busy_100us", one);
        say("take", take(80));
        say("destroy", cuCtxDestroy_v2(own));
    }
}
static void release(void) {
    for (int i = 0; i < 3; i++) {
        launch("busy_100us", one);
        say("take", take(80));
        cuDevicePrimaryCtxRelease_v2(0);
        begin();
    }
}
static void streams(void) {
    for (int i = 0; i < 200; i++) {
        CUstream mine;
        cuStreamCreate(&mine, 1);
        launch("busy_20us", mine);
        cuStreamDestroy_v2(mine);
    }
    say("end", cuCtxSynchronize());
}

/* --- captures --- */

static volatile int stop;
static void *launches(void *unused) {
    char name[32];
    cuCtxSetCurrent(context);
    for (int i = 1; !stop; i++) {
        snprintf(name, sizeof name, "busy_%dns", 5000 + i % 1000);
        launch(name, other);
        if (i % 8 == 0) cuStreamSynchronize(other);
    }
    return unused;
}
static void nodes(CUgraph graph) { size_t count = 0; cuGraphGetNodes(graph, NULL, &count); printf("nodes %zu\n", count); }
static void capture(int mode) {
    pthread_t thread;
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    pthread_create(&thread, NULL, launches, NULL);
    for (int turn = 0; turn < 20; turn++) {
        int result = cuStreamBeginCapture_v2(one, mode);
        for (int i = 0; i < 4; i++) result |= launch("busy_100us", one), usleep(100);
        result |= cuMemsetD8Async(0, 0, 1000, one);
        result |= cuStreamEndCapture(one, &graph);
        if (result || turn == 19) say("capture", result);
        if (turn < 19) cuGraphDestroy(graph);
    }
    stop = 1;
    pthread_join(thread, NULL);
    nodes(graph);
    cuGraphInstantiateWithFlags(&exec, graph, 0);
    for (int i = 0; i < 20; i++) cuGraphLaunch(exec, one);
    say("end", cuCtxSynchronize());
}
static void strict(void) { capture(0); }
static void local(void) { capture(1); }
static void relaxed(void) { capture(2); }
static void given(void) {
    CUgraph graph, same;
    cuGraphCreate(&graph, 0);
    say("begin", cuStreamBeginCaptureToGraph(one, graph, NULL, NULL, 0, 2));
    for (int i = 0; i < 4; i++) launch("busy_100us", one);
    say("end", cuStreamEndCapture(one, &same));
    nodes(graph);
}

/* --- memory of graphs --- */

static CUallocNode piece(void) {
    return (CUallocNode){.pool = {.type = 1, .location = {1, 0}}, .bytes = 60 * MIB};
}
static void twice(CUgraph a, CUgraph b) {
    CUgraphExec first, second;
    say("first", cuGraphInstantiateWithFlags(&first, a, 0));
    say("second", cuGraphInstantiateWithFlags(&second, b, 0));
    cuGraphExecDestroy(first);
    say("again", cuGraphInstantiateWithFlags(&second, b, 0));
}
static void captured(void) {
    CUgraph graph;
    CUdeviceptr at;
    cuStreamBeginCapture_v2(one, 0);
    cuMemAllocAsync(&at, 60 * MIB, one);
    launch("busy_100us", one);
    cuStreamEndCapture(one, &graph);
    info();
    twice(graph, graph);
}
static void transient(void) {
    CUgraph graph;
    CUdeviceptr at;
    cuStreamBeginCapture_v2(one, 0);
    for (int i = 0; i < 5; i++) {
        cuMemAllocAsync(&at, 60 * MIB, one);
        launch("busy_100us", one);
        cuMemFreeAsync(at, one);
    }
    cuStreamEndCapture(one, &graph);
    twice(graph, graph);
}
static void cloned(void) {
    CUgraph graph, copy;
    CUallocNode how = piece();
    cuGraphCreate(&graph, 0);
    cuGraphAddMemAllocNode(NULL, graph, NULL, 0, &how);
    cuGraphClone(&copy, graph);
    cuGraphDestroy(graph);
    cuGraphClone(&graph, copy);
    twice(graph, copy);
}
static void child(void) {
    CUgraph graph, outer;
    CUallocNode how = piece();
    cuGraphCreate(&graph, 0);
    cuGraphCreate(&outer, 0);
    cuGraphAddMemAllocNode(NULL, graph, NULL, 0, &how);
    cuGraphAddChildGraphNode(NULL, outer, NULL, 0, graph);
    twice(outer, outer);
}

/* --- processes --- */

static void *holds(void *unused) {
    cuCtxSetCurrent(context);
    say("take", take(60));
    for (;;) pause();
    return unused;
}
static void headless(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, holds, NULL);
    pthread_exit(NULL);
}
/* Each in a PID namespace of its own, all of them number 1. */
static void nested(void) {
    for (int i = 0; i < 3; i++) {
        int ready[2];
        char c;
        if (pipe(ready)) exit(1);
        if (!fork()) {
            if (unshare(CLONE_NEWPID)) { printf("no namespaces\n"); _exit(77); }
            if (fork()) for (;;) pause();
            begin();
            say("take", take(60));
            if (write(ready[1], "x", 1) != 1) exit(1);
            for (;;) pause();
        }
        close(ready[1]);
        if (read(ready[0], &c, 1) != 1) exit(1);
    }
    for (;;) pause();
}
static void big(void) { say("take", take(500)); say("take", take(60)); }

int main(int argc, char **argv) {
    static const struct { const char *name; void (*run)(void); int own; } known[] = {
        {"spin", spin, 0}, {"pipeline", pipeline, 0}, {"persistent", persistent, 0}, {"reset", reset, 0},
        {"destroy", destroy, 0}, {"release", release, 0}, {"streams", streams, 0}, {"strict", strict, 0},
        {"local", local, 0}, {"relaxed", relaxed, 0}, {"given", given, 0}, {"captured", captured, 0},
        {"transient", transient, 0}, {"cloned", cloned, 0}, {"child", child, 0}, {"headless", headless, 0},
        {"nested", nested, 1}, {"big", big, 0},
    };
    if (argc < 3) return 2;
    find(argv[1]);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].name, argv[2])) {
            if (!known[i].own) begin();
            known[i].run();
            return 0;
        }
    return 2;
}
