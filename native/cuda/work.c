/* The stub driver's work: kernels that last as long as their names say, in streams, on the card's
 * one line of work, first come first served. `busy_5us`, `busy_200ms`, `busy_1500ns`.
 *
 * `meet_8_1ms` is a collective of eight ranks: on each card it spins until the last rank's has begun.
 * Here the host spins instead, in the call. $LOCKSTEP_CUDA_GROUP is the number of the ranks' group. */
#include <stdlib.h>

#include "driver.h"

enum { QUEUE = 1024 };
struct Module { int unused; };
struct Function { uint64_t nanoseconds; uint32_t ranks; struct Function *next; char name[64]; };
struct Stream { uint64_t end, queue[QUEUE]; uint32_t count; CUgraph captured; };
struct Event { uint64_t at; };
struct Graph { uint64_t nanoseconds, bytes; uint32_t nodes; };
struct Exec { uint64_t nanoseconds, memory; };

static struct Stream legacy[WORLD_CARDS];

static struct Stream *stream_of(CUstream given) {
    /* The default streams are called 0, 1 and 2. */
    if ((uintptr_t)given > 2) return given;
    int card = current_card();
    return card < 0 ? NULL : &legacy[card];
}

/* Be there for a collective; its card is busy from its own turn until the last rank's. */
static void meet(World *w, struct Stream *stream, int card, uint32_t ranks) {
    const char *group = getenv("LOCKSTEP_CUDA_GROUP");
    uint64_t which = (uint64_t)(group ? atoi(group) : 0) % WORLD_CARDS;
    Meeting *here = &w->meetings[which];
    shared_lock(&w->lock);
    uint64_t turn = lockstepNow(), round = here->round;
    if (stream->end > turn) turn = stream->end;
    if (w->cards[card].busy_until > turn) turn = w->cards[card].busy_until;
    if (turn > here->begin) here->begin = turn;
    bool last = ++here->arrived == ranks;
    if (last) {
        here->arrived = 0;
        here->round++;
    }
    shared_unlock(&w->lock);
    if (last) lockstepWake(&here->round, which + 1);
    while (!last && __atomic_load_n(&here->round, __ATOMIC_ACQUIRE) == round) lockstepWait(&here->round, (uint32_t)round, 0, which + 1);
    shared_lock(&w->lock);
    Tenant *me = world_me(w);
    if (me && here->begin > turn) me->busy[card] += here->begin - turn;
    if (w->cards[card].busy_until < here->begin) w->cards[card].busy_until = here->begin;
    shared_unlock(&w->lock);
}

/* Put so much work on the card; the host waits where the stream's queue is full. */
static CUresult work_of(CUstream given, uint64_t nanoseconds, uint32_t ranks) {
    struct Stream *stream = stream_of(given);
    int card = current_card();
    World *w = world();
    if (!stream || card < 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (stream->captured) {
        stream->captured->nanoseconds += nanoseconds;
        stream->captured->nodes++;
        return CUDA_SUCCESS;
    }
    if (ranks) meet(w, stream, card, ranks);
    uint64_t oldest = stream->queue[stream->count % QUEUE];
    while (oldest > lockstepNow()) lockstepWait(NULL, 0, oldest, 0);
    shared_lock(&w->lock);
    uint64_t start = lockstepNow();
    if (stream->end > start) start = stream->end;
    if (w->cards[card].busy_until > start) start = w->cards[card].busy_until;
    uint64_t end = start + nanoseconds;
    w->cards[card].busy_until = end;
    Tenant *me = world_me(w);
    if (me) me->busy[card] += nanoseconds;
    shared_unlock(&w->lock);
    stream->end = end;
    stream->queue[stream->count++ % QUEUE] = end;
    return CUDA_SUCCESS;
}

static CUresult work(CUstream given, uint64_t nanoseconds) { return work_of(given, nanoseconds, 0); }

static void wait_for(uint64_t time) {
    while (lockstepNow() < time) lockstepWait(NULL, 0, time, 0);
}

/* --- modules --- */

static struct Function *functions;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

CUresult cuModuleLoadData(CUmodule *out, const void *image) {
    (void)image;
    *out = calloc(1, sizeof **out);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuModuleUnload(CUmodule module) { free(module); return CUDA_SUCCESS; }
CUresult cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name) {
    unsigned long long count;
    char unit[4] = "";
    (void)module;
    unsigned ranks = 0;
    if (sscanf(name, "busy_%llu%3s", &count, unit) != 2 &&
        sscanf(name, "meet_%u_%llu%3s", &ranks, &count, unit) != 3) return CUDA_ERROR_NOT_FOUND;
    uint64_t scale = !strcmp(unit, "ns") ? 1 : !strcmp(unit, "us") ? 1000 : !strcmp(unit, "ms") ? 1000000 : 0;
    if (!scale) return CUDA_ERROR_NOT_FOUND;
    pthread_mutex_lock(&lock);
    struct Function *one = functions;
    while (one && strcmp(one->name, name)) one = one->next;
    if (!one && (one = calloc(1, sizeof *one))) {
        one->nanoseconds = count * scale;
        one->ranks = ranks;
        snprintf(one->name, sizeof one->name, "%s", name);
        one->next = functions;
        functions = one;
    }
    pthread_mutex_unlock(&lock);
    *out = one;
    return one ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, CUstream stream, void **parameters, void **extra) {
    (void)shared, (void)parameters, (void)extra;
    if (!f || !gx || !gy || !gz || !bx || !by || !bz) return CUDA_ERROR_INVALID_VALUE;
    return work_of(stream, f->nanoseconds, f->ranks);
}
CUresult cuLaunchKernelEx(const CUlaunchConfig *how, CUfunction f, void **parameters, void **extra) {
    (void)parameters, (void)extra;
    return work(how->stream, f->nanoseconds);
}
CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                   unsigned by, unsigned bz, unsigned shared, CUstream stream, void **parameters) {
    return cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, stream, parameters, NULL);
}

/* --- copies: 25 GB/s to and from the host, 2 TB/s on the card --- */

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
    (void)to, (void)from;
    return work(stream, bytes / 25);
}
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    (void)to, (void)from;
    return work(stream, bytes / 25);
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    (void)to, (void)from;
    return work(stream, bytes / 2000);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes) {
    CUresult result = cuMemcpyHtoDAsync_v2(to, from, bytes, NULL);
    if (!result) wait_for(stream_of(NULL)->end);
    return result;
}
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) {
    CUresult result = cuMemcpyDtoHAsync_v2(to, from, bytes, NULL);
    if (!result) wait_for(stream_of(NULL)->end);
    return result;
}

CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t bytes, CUstream stream) {
    (void)at, (void)value;
    return work(stream, 1000 + bytes / 2000);
}

/* --- streams and events --- */

CUresult cuStreamCreate(CUstream *out, unsigned flags) {
    (void)flags;
    *out = calloc(1, sizeof **out);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuStreamDestroy_v2(CUstream stream) { free(stream); return CUDA_SUCCESS; }
CUresult cuStreamSynchronize(CUstream given) {
    struct Stream *stream = stream_of(given);
    if (!stream) return CUDA_ERROR_INVALID_CONTEXT;
    wait_for(stream->end);
    return CUDA_SUCCESS;
}
CUresult cuStreamQuery(CUstream given) {
    struct Stream *stream = stream_of(given);
    if (!stream) return CUDA_ERROR_INVALID_CONTEXT;
    return stream->end <= lockstepNow() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
CUresult cuCtxSynchronize(void) {
    World *w = world();
    int card = current_card();
    if (card < 0) return CUDA_ERROR_INVALID_CONTEXT;
    wait_for(__atomic_load_n(&w->cards[card].busy_until, __ATOMIC_ACQUIRE));
    return CUDA_SUCCESS;
}
CUresult cuEventCreate(CUevent *out, unsigned flags) {
    (void)flags;
    *out = calloc(1, sizeof **out);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuEventDestroy_v2(CUevent event) { free(event); return CUDA_SUCCESS; }
CUresult cuEventRecord(CUevent event, CUstream given) {
    struct Stream *stream = stream_of(given);
    if (!stream) return CUDA_ERROR_INVALID_CONTEXT;
    uint64_t now = lockstepNow();
    event->at = stream->end > now ? stream->end : now;
    return CUDA_SUCCESS;
}
CUresult cuEventQuery(CUevent event) { return event->at <= lockstepNow() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY; }
CUresult cuEventSynchronize(CUevent event) { wait_for(event->at); return CUDA_SUCCESS; }
CUresult cuEventElapsedTime(float *out, CUevent from, CUevent to) {
    if (cuEventQuery(from) || cuEventQuery(to)) return CUDA_ERROR_NOT_READY;
    *out = (float)((double)(to->at - from->at) / 1e6);
    return CUDA_SUCCESS;
}

/* --- graphs: as long as what is in them --- */

CUresult cuMemAlloc_v2(CUdeviceptr *, size_t), cuMemFree_v2(CUdeviceptr);

CUresult cuStreamBeginCapture_v2(CUstream stream, int mode) {
    (void)mode;
    if ((uintptr_t)stream <= 2) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    stream->captured = calloc(1, sizeof *stream->captured);
    return CUDA_SUCCESS;
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph *out) {
    *out = stream->captured;
    stream->captured = NULL;
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuStreamIsCapturing(CUstream stream, int *out) {
    *out = (uintptr_t)stream > 2 && stream->captured ? 1 : 0;
    return CUDA_SUCCESS;
}
CUresult cuGraphCreate(CUgraph *out, unsigned flags) {
    (void)flags;
    *out = calloc(1, sizeof **out);
    return CUDA_SUCCESS;
}
CUresult cuGraphAddKernelNode_v2(CUgraphNode *out, CUgraph graph, const CUgraphNode *after, size_t count,
                                 const CUkernelNode *how) {
    (void)after, (void)count;
    graph->nanoseconds += how->function->nanoseconds;
    graph->nodes++;
    if (out) *out = NULL;
    return CUDA_SUCCESS;
}
CUresult cuGraphAddMemAllocNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *after, size_t count, CUallocNode *how) {
    (void)after, (void)count;
    graph->bytes += how->bytes;
    graph->nodes++;
    if (out) *out = NULL;
    return CUDA_SUCCESS;
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags) {
    (void)flags;
    CUdeviceptr at = 0;
    CUresult result = graph->bytes ? cuMemAlloc_v2(&at, graph->bytes) : CUDA_SUCCESS;
    if (result) return result;
    *out = calloc(1, sizeof **out);
    (*out)->nanoseconds = graph->nanoseconds;
    (*out)->memory = at;
    return CUDA_SUCCESS;
}
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) { return work(stream, exec->nanoseconds); }
CUresult cuGraphExecDestroy(CUgraphExec exec) {
    if (exec->memory) cuMemFree_v2(exec->memory);
    free(exec);
    return CUDA_SUCCESS;
}
CUresult cuGraphDestroy(CUgraph graph) { free(graph); return CUDA_SUCCESS; }
