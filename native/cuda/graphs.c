/* The stub driver's graphs and captures: as long as what is in them, with the memory of their nodes. */
#include <stdlib.h>

#include "streams.h"

enum { KERNEL = 0, CHILD = 4, ALLOCATION = 10, FREEING = 11, GLOBAL = 0, LOCAL = 1, RELAXED = 2 };
enum { UNSAFE = 900, LOST = 901 };
struct Exec { uint64_t nanoseconds, memory; };
CUresult cuMemAlloc_v2(CUdeviceptr *, size_t), cuMemFree_v2(CUdeviceptr);

/* Captures of the strict mode that are under way, and how this thread wants its own calls taken. */
static struct Stream *strict[64];
static __thread int mode_here;
static __thread struct Stream *capturing_here;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
    int before = mode_here;
    mode_here = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

/* It ends the captures for whose sake it is refused. */
CUresult unsafe_now(void) {
    CUresult result = CUDA_SUCCESS;
    if (mode_here == RELAXED) return result;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < 64 && mode_here == GLOBAL; i++)
        if (strict[i]) strict[i]->broken = true, result = UNSAFE;
    if (capturing_here && capturing_here->mode != RELAXED) capturing_here->broken = true, result = UNSAFE;
    pthread_mutex_unlock(&lock);
    return result;
}

static void set_strict(struct Stream *stream, bool on) {
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < 64; i++) {
        if (strict[i] == stream) strict[i] = NULL;
        if (on && !strict[i]) {
            strict[i] = stream;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}

static CUresult begin(CUstream stream, CUgraph graph, int mode) {
    if ((uintptr_t)stream <= 2) return UNSAFE;
    if (stream->captured) return CUDA_ERROR_INVALID_VALUE;
    stream->given = graph != NULL;
    stream->captured = graph ? graph : calloc(1, sizeof *graph);
    stream->mode = mode;
    stream->broken = false;
    capturing_here = stream;
    set_strict(stream, mode == GLOBAL);
    return CUDA_SUCCESS;
}
CUresult cuStreamBeginCapture_v2(CUstream stream, int mode) { return begin(stream, NULL, mode); }
CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const void *after, const void *edges, size_t count,
                                     int mode) {
    (void)after, (void)edges, (void)count;
    return graph ? begin(stream, graph, mode) : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph *out) {
    if ((uintptr_t)stream <= 2 || !stream->captured) return CUDA_ERROR_INVALID_VALUE;
    set_strict(stream, false);
    *out = stream->broken ? NULL : stream->captured;
    stream->captured = NULL;
    if (capturing_here == stream) capturing_here = NULL;
    return stream->broken ? LOST : CUDA_SUCCESS;
}
CUresult cuStreamIsCapturing(CUstream stream, int *out) {
    *out = (uintptr_t)stream > 2 && stream->captured ? stream->broken ? 2 : 1 : 0;
    return CUDA_SUCCESS;
}

/* --- graphs --- */

CUgraphNode graph_add(CUgraph graph, Step step) {
    struct Node *made = calloc(1, sizeof *made);
    if (!made) abort();
    made->step = step;
    if (graph->last) graph->last->next = made;
    else graph->first = made;
    graph->last = made;
    graph->count++;
    return made;
}
CUresult cuGraphCreate(CUgraph *out, unsigned flags) {
    (void)flags;
    *out = calloc(1, sizeof **out);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuGraphDestroy(CUgraph graph) {
    for (struct Node *one = graph->first, *next; one; one = next) {
        next = one->next;
        free(one);
    }
    free(graph);
    return CUDA_SUCCESS;
}
CUresult cuGraphClone(CUgraph *out, CUgraph graph) {
    cuGraphCreate(out, 0);
    for (struct Node *one = graph->first; one; one = one->next) {
        Step step = one->step;
        if (step.child) cuGraphClone(&step.child, step.child);
        graph_add(*out, step);
    }
    return CUDA_SUCCESS;
}
CUresult cuGraphAddMemAllocNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *after, size_t count, CUallocNode *how) {
    static uint64_t next = 0x600000000000ULL;
    (void)after, (void)count;
    how->pointer = __atomic_fetch_add(&next, how->bytes, __ATOMIC_RELAXED);
    CUgraphNode made = graph_add(graph, (Step){.type = ALLOCATION, .allocation = *how});
    if (out) *out = made;
    return CUDA_SUCCESS;
}
CUresult cuGraphAddMemFreeNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *after, size_t count, CUdeviceptr at) {
    (void)after, (void)count;
    CUgraphNode made = graph_add(graph, (Step){.type = FREEING, .freed = at});
    if (out) *out = made;
    return CUDA_SUCCESS;
}
CUresult cuGraphAddChildGraphNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *after, size_t count, CUgraph child) {
    (void)after, (void)count;
    CUgraph copy;
    cuGraphClone(&copy, child);
    CUgraphNode made = graph_add(graph, (Step){.type = CHILD, .child = copy});
    if (out) *out = made;
    return CUDA_SUCCESS;
}
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
    size_t i = 0;
    for (struct Node *one = graph->first; one && nodes && i < *count; one = one->next) nodes[i++] = one;
    *count = nodes ? i : graph->count;
    return CUDA_SUCCESS;
}
CUresult cuGraphNodeGetType(CUgraphNode node, int *type) { *type = node->step.type; return CUDA_SUCCESS; }
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *out) { *out = node->step.child; return CUDA_SUCCESS; }
CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUallocNode *out) { *out = node->step.allocation; return CUDA_SUCCESS; }
CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr *out) { *out = node->step.freed; return CUDA_SUCCESS; }

static void sum(CUgraph graph, uint64_t *nanoseconds, uint64_t *bytes, uint64_t *most) {
    for (struct Node *one = graph->first; one; one = one->next) {
        *nanoseconds += one->step.nanoseconds;
        if (one->step.child) sum(one->step.child, nanoseconds, bytes, most);
        if (one->step.type == ALLOCATION) *bytes += one->step.allocation.bytes;
        if (*bytes > *most) *most = *bytes;
        for (struct Node *of = graph->first; one->step.type == FREEING && of; of = of->next)
            if (of->step.type == ALLOCATION && of->step.allocation.pointer == one->step.freed) *bytes -= of->step.allocation.bytes;
    }
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags) {
    (void)flags;
    CUdeviceptr at = 0;
    uint64_t nanoseconds = 0, bytes = 0, most = 0;
    sum(graph, &nanoseconds, &bytes, &most);
    CUresult result = most ? cuMemAlloc_v2(&at, most) : CUDA_SUCCESS;
    if (result) return result;
    *out = calloc(1, sizeof **out);
    **out = (struct Exec){nanoseconds, at};
    return CUDA_SUCCESS;
}
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) { return work(stream, exec->nanoseconds); }
CUresult cuGraphExecDestroy(CUgraphExec exec) {
    if (exec->memory) cuMemFree_v2(exec->memory);
    free(exec);
    return CUDA_SUCCESS;
}
