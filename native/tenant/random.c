/* A legal program drawn at random, for tests: what it says is the same behind the front.
 *
 *   random SEED STEPS PROCESSES THREADS FILE      each process writes what it says to FILE.NUMBER
 *
 * Each process draws its own program; the first is alone on its card when PROCESSES is 1, and then says
 * after each step how many MiB of the card are in use. Threads draw theirs when the process is done. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calls.h"

#define MIB ((size_t)1 << 20)
enum { STREAMS = 4, HELD = 64, GRAPHS = 12, EVENTS = 8, SPINS = 8, MOST = 900 };
enum { PLAIN, ASYNC, POOL, ARRAY, MIP, VMM, WAYS };
static const char *const KERNELS[] = {"busy_1us", "busy_20us", "busy_200us", "vary_10us_300us", "draw_5us_500us", "busy_2ms"};

typedef struct { int way; uint64_t at, mapped; size_t bytes; } Held;
/* A graph with memory of its own is instantiated once at a time, and is nobody's child or copy. */
typedef struct { CUgraph graph; CUgraphExec exec; bool memory; } Drawn;
typedef struct {
    uint64_t seed;
    int step, flags, threads;
    bool alone, nested;
    CUcontext context;
    CUmodule module;
    CUmemoryPool pool;
    CUstream stream[STREAMS];
    bool blocked[STREAMS];     /* it waits for a flag that is to come */
    int spins[SPINS], spinning;
    CUevent event[EVENTS];
    bool after_blocked[EVENTS];
    Held held[HELD];
    int count;
    size_t mib;
    Drawn drawn[GRAPHS];
    char *text;
    size_t length, room;
} Program;

static uint64_t draw(Program *p, uint64_t below) {
    uint64_t z = (p->seed += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return (z ^ (z >> 31)) % below;
}
__attribute__((format(printf, 2, 3))) static void say(Program *p, const char *format, ...) {
    va_list list;
    if (p->room - p->length < 256) p->text = realloc(p->text, p->room = 2 * p->room + 4096);
    va_start(list, format);
    p->length += (size_t)vsnprintf(p->text + p->length, 200, format, list);
    va_end(list);
}
static void told(Program *p, const char *what, CUresult result) {
    size_t unused = 0, total = 0;
    if (p->alone) cuMemGetInfo_v2(&unused, &total);
    say(p, "%d %s %d %zu\n", p->step, what, result, (total - unused) / MIB);
}
static CUfunction kernel(Program *p, const char *name) {
    CUfunction found = NULL;
    if (cuModuleGetFunction(&found, p->module, name)) abort();
    return found;
}
static CUresult launch(CUfunction f, CUstream stream) { return cuLaunchKernel(f, 132, 1, 1, 128, 1, 1, 0, stream, NULL, NULL); }
static CUfunction any_kernel(Program *p) { return kernel(p, KERNELS[draw(p, sizeof KERNELS / sizeof *KERNELS)]); }

/* --- work that waits for later work --- */

static int free_stream(Program *p) {
    int from = (int)draw(p, STREAMS);
    for (int i = 0; i < STREAMS; i++)
        if (!p->blocked[(from + i) % STREAMS]) return (from + i) % STREAMS;
    abort();
}
static int unblocked(const Program *p) {
    int count = 0;
    for (int i = 0; i < STREAMS; i++) count += !p->blocked[i];
    return count;
}
static void spin(Program *p) {
    char name[32];
    if (p->spinning == SPINS || unblocked(p) < 2 || p->flags % 15 == 14) return;
    int in = free_stream(p);
    snprintf(name, sizeof name, "spin_%d", ++p->flags);
    p->spins[p->spinning++] = p->flags;
    p->blocked[in] = true;
    told(p, "spin", launch(kernel(p, name), p->stream[in]));
}
static void set_free(Program *p) {
    CUstream in = p->stream[free_stream(p)];
    while (p->spinning) {
        char name[32];
        snprintf(name, sizeof name, "flag_%d", p->spins[--p->spinning]);
        told(p, "flag", launch(kernel(p, name), in));
    }
    memset(p->blocked, 0, sizeof p->blocked);
    memset(p->after_blocked, 0, sizeof p->after_blocked);
}

/* --- memory --- */

static CUresult array(Held *one) {
    CUarrayShape flat = {one->bytes >> 10, 256, 0x20, 1};
    CUarray3DShape deep = {one->bytes >> 10, 256, 0, 0x20, 1, 0};
    CUarray made = NULL;
    CUresult result = one->way == ARRAY ? cuArrayCreate_v2(&made, &flat) : cuMipmappedArrayCreate(&made, &deep, 3);
    one->at = (uintptr_t)made;
    return result;
}
static CUresult take(Program *p, Held *one) {
    CUmemPoolProps pooled = {.type = 1, .location = {1, 0}};
    CUmemAllocationProp physical = {.type = 1, .location = {1, 0}};
    CUhandle handle;
    size_t pitch;
    CUresult result;
    switch (one->way) {
    case ASYNC: return cuMemAllocAsync(&one->at, one->bytes, p->stream[free_stream(p)]);
    case POOL:
        if (!p->pool && cuMemPoolCreate(&p->pool, &pooled)) abort();
        return cuMemAllocFromPoolAsync(&one->at, one->bytes, p->pool, p->stream[free_stream(p)]);
    case ARRAY:
    case MIP: return array(one);
    case VMM:
        result = cuMemCreate(&handle, one->bytes, &physical, 0);
        if (result) return result;
        if (cuMemAddressReserve(&one->mapped, one->bytes, 0, 0, 0) || cuMemMap(one->mapped, one->bytes, 0, handle, 0)) abort();
        one->at = handle;
        return draw(p, 2) ? cuMemRelease(handle) : cuMemRetainAllocationHandle(&handle, (void *)one->mapped) || cuMemRelease(handle) || cuMemRelease(handle);
    default:
        if (draw(p, 3) == 0) return cuMemAllocManaged(&one->at, one->bytes, 1);
        return draw(p, 2) ? cuMemAlloc_v2(&one->at, one->bytes) : cuMemAllocPitch_v2(&one->at, &pitch, one->bytes >> 10, 1024, 4);
    }
}
static CUresult give(Program *p, const Held *one) {
    switch (one->way) {
    case ASYNC:
    case POOL: return cuMemFreeAsync(one->at, p->stream[free_stream(p)]);
    case ARRAY: return cuArrayDestroy((CUarray)one->at);
    case MIP: return cuMipmappedArrayDestroy((CUarray)one->at);
    case VMM: return cuMemUnmap(one->mapped, one->bytes);
    default: return cuMemFree_v2(one->at);
    }
}
static void allocate(Program *p) {
    Held one = {.way = (int)draw(p, WAYS), .bytes = (1 + draw(p, 40)) * MIB};
    if (p->count == HELD || p->mib + one.bytes / MIB > MOST) return;
    CUresult result = take(p, &one);
    if (!result) p->held[p->count++] = one, p->mib += one.bytes / MIB;
    told(p, "take", result);
}
static void release(Program *p) {
    if (!p->count) return;
    Held *one = &p->held[draw(p, (uint64_t)p->count)];
    p->mib -= one->bytes / MIB;
    CUresult result = give(p, one);
    *one = p->held[--p->count];
    told(p, "give", result);
}

/* --- streams and events --- */

static void work(Program *p) {
    CUstream in = p->stream[draw(p, STREAMS)];
    size_t bytes = (size_t)draw(p, 4 * MIB) + 1, sizes[2] = {bytes, bytes / 2 + 1}, which = 0;
    size_t flat[16] = {[14] = bytes, [15] = 3}, deep[25] = {[22] = bytes, [23] = 2, [24] = 2};
    CUdeviceptr ends[2] = {0, 0};
    switch (draw(p, 12)) {
    case 0: told(p, "memset", cuMemsetD8Async(0, 0, bytes, in)); break;
    case 1: told(p, "wide memset", cuMemsetD32Async(0, 0, bytes / 4 + 1, in)); break;
    case 2: told(p, "upload", cuMemcpyHtoDAsync_v2(0, NULL, bytes, in)); break;
    case 3: told(p, "copy", cuMemcpyDtoDAsync_v2(0, 0, bytes, in)); break;
    case 4: told(p, "flat copy", cuMemcpy2DAsync_v2((void *)flat, in)); break;
    case 5: told(p, "deep copy", cuMemcpy3DAsync_v2((void *)deep, in)); break;
    case 6: told(p, "copies", cuMemcpyBatchAsync_v2(ends, ends, sizes, 2, NULL, &which, 1, in)); break;
    case 7: told(p, "load", cuMemcpyHtoD_v2(0, NULL, bytes)); break;
    default: told(p, "launch", launch(any_kernel(p), in));
    }
}
static void record(Program *p) {
    uint64_t in = draw(p, STREAMS), which = draw(p, EVENTS);
    p->after_blocked[which] = p->blocked[in];
    told(p, "record", cuEventRecord(p->event[which], p->stream[in]));
}
static void follow(Program *p) {
    uint64_t in = draw(p, STREAMS), which = draw(p, EVENTS);
    if (p->after_blocked[which] && (unblocked(p) < 2 || p->blocked[in])) return;
    p->blocked[in] |= p->after_blocked[which];
    told(p, "follow", cuStreamWaitEvent(p->stream[in], p->event[which], 0));
}
static void settle(Program *p) {
    CUevent event = p->event[draw(p, EVENTS)];
    if (p->spinning && draw(p, 2)) {
        /* The host waits for what waits for no flag. */
        told(p, "stream", cuStreamSynchronize(p->stream[free_stream(p)]));
        return;
    }
    set_free(p);
    switch (draw(p, 4)) {
    case 0: told(p, "event", cuEventSynchronize(event) || cuEventQuery(event)); break;
    case 1: told(p, "card", cuCtxSynchronize()); break;
    default: told(p, "stream", cuStreamSynchronize(p->stream[draw(p, STREAMS)]));
    }
}
static void renew(Program *p) {
    int which = free_stream(p);
    CUresult result = cuStreamDestroy_v2(p->stream[which]);
    told(p, "renew", result || cuStreamCreate(&p->stream[which], 1));
}

/* --- graphs --- */

static Drawn *room_for_graph(Program *p) {
    for (int i = 0; i < GRAPHS; i++)
        if (!p->drawn[i].graph && !p->drawn[i].exec) return &p->drawn[i];
    return NULL;
}
static Drawn *any_graph(Program *p) {
    Drawn *one = &p->drawn[draw(p, GRAPHS)];
    return one->graph || one->exec ? one : NULL;
}
static void capture(Program *p) {
    enum { STRICT = 0, LOCAL = 1 };
    Drawn *into = room_for_graph(p);
    int in = free_stream(p), mode = (int)draw(p, 3), capturing = 0;
    CUstream stream = p->stream[in], other = p->stream[(in + 1) % STREAMS];
    CUdeviceptr at;
    size_t nodes = 0;
    if (!into) return;
    if (mode == STRICT && p->threads) mode = LOCAL;
    into->memory = draw(p, 3) == 0;
    if (draw(p, 2)) told(p, "capture", cuStreamBeginCapture_v2(stream, mode));
    else told(p, "capture to", cuGraphCreate(&into->graph, 0) || cuStreamBeginCaptureToGraph(stream, into->graph, NULL, NULL, 0, mode));
    for (uint64_t left = 1 + draw(p, 5); left; left--) {
        CUresult result = 0;
        if (into->memory) result = cuMemAllocAsync(&at, (1 + draw(p, 20)) * MIB, stream);
        result |= launch(any_kernel(p), draw(p, 4) ? stream : other);
        result |= cuMemsetD8Async(0, 0, 1000, stream);
        if (into->memory) result |= cuMemFreeAsync(at, stream);
        told(p, "captured", result);
    }
    told(p, "is capturing", cuStreamIsCapturing(stream, &capturing) || capturing != 1);
    told(p, "end", cuStreamEndCapture(stream, &into->graph));
    cuGraphGetNodes(into->graph, NULL, &nodes);
    say(p, "nodes %zu\n", nodes);
}
static void build(Program *p) {
    Drawn *into = room_for_graph(p), *from = any_graph(p);
    if (!into) return;
    CUkernelNode how = {.function = any_kernel(p), .grid = {1, 1, 1}, .block = {1, 1, 1}};
    CUallocNode piece = {.pool = {.type = 1, .location = {1, 0}}, .bytes = (1 + draw(p, 20)) * MIB};
    into->memory = false;
    if (from && from->graph && !from->memory && draw(p, 2)) {
        told(p, "clone", cuGraphClone(&into->graph, from->graph));
        return;
    }
    CUresult result = cuGraphCreate(&into->graph, 0) || cuGraphAddKernelNode_v2(NULL, into->graph, NULL, 0, &how);
    if (from && from->graph && !from->memory) result |= cuGraphAddChildGraphNode(NULL, into->graph, NULL, 0, from->graph);
    if (draw(p, 3) == 0) {
        into->memory = true;
        result |= cuGraphAddMemAllocNode(NULL, into->graph, NULL, 0, &piece);
        result |= cuGraphAddMemFreeNode(NULL, into->graph, NULL, 0, piece.pointer);
    }
    told(p, "build", result);
}
static void use_graph(Program *p) {
    Drawn *one = any_graph(p);
    if (!one) return;
    if (!one->exec) {
        told(p, "instantiate", cuGraphInstantiateWithFlags(&one->exec, one->graph, 0));
    } else if (draw(p, 3)) {
        for (uint64_t left = 1 + draw(p, 3); left; left--) told(p, "graph", cuGraphLaunch(one->exec, p->stream[draw(p, STREAMS)]));
    } else {
        if (one->graph && draw(p, 2)) told(p, "drop graph", cuGraphDestroy(one->graph)), one->graph = NULL;
        set_free(p);
        told(p, "drop executable", cuCtxSynchronize() || cuGraphExecDestroy(one->exec));
        one->exec = NULL;
        if (one->graph && draw(p, 2)) told(p, "drop graph", cuGraphDestroy(one->graph)), one->graph = NULL;
    }
}

/* --- contexts --- */

static void enter(Program *p) {
    CUresult result = cuModuleLoadData(&p->module, "");
    for (int i = 0; i < STREAMS; i++) result |= cuStreamCreate(&p->stream[i], 1);
    for (int i = 0; i < EVENTS; i++) result |= cuEventCreate(&p->event[i], 0) | cuEventRecord(p->event[i], p->stream[0]);
    told(p, "enter", result);
}
static void begin(Program *p) {
    CUresult result = cuInit(0) || cuDevicePrimaryCtxRetain(&p->context, 0) || cuCtxSetCurrent(p->context);
    told(p, "begin", result);
    enter(p);
}
/* What is the device's own, and not the context's, is given back by the program. */
static void leave(Program *p) {
    set_free(p);
    told(p, "leave", cuCtxSynchronize());
    for (int i = p->count; i-- > 0;) {
        if (p->held[i].way != VMM && p->held[i].way != POOL) continue;
        told(p, "give", give(p, &p->held[i]));
        p->held[i] = p->held[--p->count];
    }
    if (p->pool) told(p, "drop pool", cuMemPoolDestroy(p->pool)), p->pool = NULL;
    p->count = 0;
    p->mib = 0;
    memset(p->drawn, 0, sizeof p->drawn);
}
static void reset(Program *p) {
    if (p->threads || p->nested || draw(p, 4)) return;
    leave(p);
    if (draw(p, 2)) told(p, "reset", cuDevicePrimaryCtxReset_v2(0));
    told(p, "release", cuDevicePrimaryCtxRelease_v2(0));
    begin(p);
}
static void go(Program *p, int steps);
static void nest(Program *p) {
    if (p->nested || draw(p, 3)) return;
    Program inner = {.seed = draw(p, UINT64_MAX), .alone = p->alone, .nested = true, .threads = p->threads, .step = p->step * 1000};
    inner.flags = p->flags;
    told(p, "create", cuCtxCreate_v2(&inner.context, 0, 0));
    inner.text = p->text, inner.length = p->length, inner.room = p->room;
    enter(&inner);
    go(&inner, 12);
    leave(&inner);
    p->flags = inner.flags;
    p->text = inner.text, p->length = inner.length, p->room = inner.room;
    told(p, "destroy", cuCtxDestroy_v2(inner.context) || cuCtxSetCurrent(p->context));
}

static void go(Program *p, int steps) {
    static void (*const ways[])(Program *) = {work, work, work, work, work, allocate, allocate, release, record, follow, settle,
                                              renew, spin, spin, capture, build, use_graph, use_graph, use_graph, reset, nest};
    for (int until = p->step + steps; p->step < until; p->step++) ways[draw(p, sizeof ways / sizeof *ways)](p);
}
static void end(Program *p) {
    set_free(p);
    told(p, "sync", cuCtxSynchronize());
    while (p->count) release(p);
    for (int i = 0; i < GRAPHS; i++) {
        if (p->drawn[i].exec) told(p, "drop executable", cuGraphExecDestroy(p->drawn[i].exec));
        if (p->drawn[i].graph) told(p, "drop graph", cuGraphDestroy(p->drawn[i].graph));
    }
    told(p, "end", 0);
}

static void *in_thread(void *given) {
    Program *p = given;
    if (cuCtxSetCurrent(p->context)) abort();
    enter(p);
    go(p, 60);
    end(p);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc < 6) return 2;
    int steps = atoi(argv[2]), processes = atoi(argv[3]), threads = atoi(argv[4]), number = 0, status, trouble = 0;
    /* No process uses CUDA before it forks. */
    while (number < processes - 1 && fork()) number++;
    bool first = number == processes - 1;
    Program p = {.seed = strtoull(argv[1], NULL, 10) * 1000003 + (uint64_t)number, .alone = processes == 1};
    Program others[8] = {0};
    pthread_t thread[8];
    begin(&p);
    go(&p, steps);
    end(&p);
    for (int i = 0; i < threads && i < 8; i++) {
        others[i] = (Program){.seed = p.seed + 77 + (uint64_t)i, .threads = threads, .context = p.context, .flags = 15 * (i + 1)};
        if (pthread_create(&thread[i], NULL, in_thread, &others[i])) abort();
    }
    for (int i = 0; i < threads && i < 8; i++) pthread_join(thread[i], NULL);
    char name[4096];
    snprintf(name, sizeof name, "%s.%d", argv[5], number);
    FILE *out = fopen(name, "w");
    if (!out) return 3;
    fwrite(p.text, 1, p.length, out);
    for (int i = 0; i < threads && i < 8; i++) fwrite(others[i].text, 1, others[i].length, out);
    fclose(out);
    while (first && wait(&status) > 0) trouble |= status;
    return trouble != 0;
}
