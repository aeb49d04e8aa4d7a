/* Memory of graphs: what their nodes allocate is there from when they are instantiated.
 *
 * The driver is asked for the nodes then: however the graph came about, by calls, by a capture, as a
 * clone or with graphs inside it. */
#include <stdlib.h>

#include "front.h"

enum { CHILD = 4, ALLOCATION = 10, FREEING = 11, DEPTH = 16 };

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count);
CUresult cuGraphNodeGetType(CUgraphNode node, int *type);
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *out);
CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUallocNode *out);
CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr *out);

/* By card: the bytes now, and the most at one time. */
typedef struct { CUdeviceptr at; uint64_t bytes; int card; } Live;
typedef struct { uint64_t now[SHARE_CARDS], most[SHARE_CARDS]; Live *live; size_t lives, room; } Need;

static void allocated(Need *need, const CUallocNode *how) {
    int card = how->pool.location.type == 1 ? share_of_device(how->pool.location.id) : -1;
    if (card < 0) return;
    need->now[card] += how->bytes;
    if (need->now[card] > need->most[card]) need->most[card] = need->now[card];
    if (need->lives == need->room) {
        size_t room = need->room ? 2 * need->room : 64;
        Live *more = realloc(need->live, room * sizeof *more);
        if (!more) return; /* it counts as never freed */
        need->live = more;
        need->room = room;
    }
    need->live[need->lives++] = (Live){how->pointer, how->bytes, card};
}

static void freed(Need *need, CUdeviceptr at) {
    for (size_t i = need->lives; i-- > 0;) {
        if (need->live[i].at != at) continue;
        need->now[need->live[i].card] -= need->live[i].bytes;
        need->live[i] = need->live[--need->lives];
        return;
    }
}

/* In the order in which they were added, in which they can run. */
static void add_nodes(Need *need, CUgraph graph, int depth) {
    size_t count = 0;
    if (depth > DEPTH || REAL(cuGraphGetNodes)(graph, NULL, &count) || !count) return;
    CUgraphNode *nodes = calloc(count, sizeof *nodes);
    if (!nodes || REAL(cuGraphGetNodes)(graph, nodes, &count)) count = 0;
    for (size_t i = 0; i < count; i++) {
        int type = -1;
        CUgraph child;
        CUdeviceptr at;
        CUallocNode how;
        if (REAL(cuGraphNodeGetType)(nodes[i], &type)) continue;
        if (type == CHILD && !REAL(cuGraphChildGraphNodeGetGraph)(nodes[i], &child)) add_nodes(need, child, depth + 1);
        if (type == ALLOCATION && !REAL(cuGraphMemAllocNodeGetParams)(nodes[i], &how)) allocated(need, &how);
        if (type == FREEING && !REAL(cuGraphMemFreeNodeGetParams)(nodes[i], &at)) freed(need, at);
    }
    free(nodes);
}

/* Reserve what the nodes of a graph allocate; false: nothing of it is reserved. */
static bool reserve_nodes(CUgraph graph, uint64_t *bytes) {
    Need need = {0};
    add_nodes(&need, graph, 0);
    free(need.live);
    for (int card = 0; card < SHARE_CARDS; card++) {
        bytes[card] = need.most[card];
        if (!bytes[card] || reserve(card, bytes[card])) continue;
        while (card--)
            if (bytes[card]) give_back(card, bytes[card]);
        return false;
    }
    return true;
}

/* An executable graph is at an even address; its low bits are free for the card. */
static uint64_t on(const void *one, int card) { return (uintptr_t)one | (uint64_t)card; }

static void settle_nodes(const uint64_t *bytes, CUgraphExec exec, CUresult result) {
    for (int card = 0; card < SHARE_CARDS; card++) {
        if (!bytes[card]) continue;
        if (result) give_back(card, bytes[card]);
        else note(EXEC, on(exec, card), bytes[card], card, context_now());
    }
}

#define INSTANTIATED(call_)                                                \
    do {                                                                   \
        uint64_t bytes[SHARE_CARDS];                                       \
        if (!granted) return call_;                                        \
        if (!reserve_nodes(graph, bytes)) return CUDA_ERROR_OUT_OF_MEMORY; \
        CUresult result = call_;                                           \
        settle_nodes(bytes, result ? NULL : *out, result);                 \
        return result;                                                     \
    } while (0)
CUresult cuGraphInstantiate(CUgraphExec *out, CUgraph graph, CUgraphNode *at, char *log, size_t size) {
    INSTANTIATED(REAL(cuGraphInstantiate)(out, graph, at, log, size));
}
CUresult cuGraphInstantiate_v2(CUgraphExec *out, CUgraph graph, CUgraphNode *at, char *log, size_t size) {
    INSTANTIATED(REAL(cuGraphInstantiate_v2)(out, graph, at, log, size));
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags) {
    INSTANTIATED(REAL(cuGraphInstantiateWithFlags)(out, graph, flags));
}
CUresult cuGraphInstantiateWithParams(CUgraphExec *out, CUgraph graph, void *how) {
    INSTANTIATED(REAL(cuGraphInstantiateWithParams)(out, graph, how));
}
CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *out, CUgraph graph, void *how) {
    INSTANTIATED(REAL(cuGraphInstantiateWithParams_ptsz)(out, graph, how));
}
CUresult cuGraphExecDestroy(CUgraphExec exec) {
    CUresult result = REAL(cuGraphExecDestroy)(exec);
    for (int card = 0; granted && !result && card < SHARE_CARDS; card++) forget(EXEC, on(exec, card));
    return result;
}
