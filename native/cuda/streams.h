/* Streams, graphs and work of the stub driver, as its files share them. */
#pragma once
#include "devices.h"

/* A kernel that spins ends when a kernel sets its flag; 0: not yet. */
enum { FLAGS = 64 };
extern uint64_t flag_set[FLAGS];

/* Where a stream is: done at `end`, or so long after `flag` was set. */
typedef struct { uint64_t end, after; int flag; } When;
enum { QUEUE = 1024 };
struct Stream {
    CUcontext context;
    uint32_t round;
    When when;
    uint64_t queue[QUEUE];
    uint32_t count;
    CUgraph captured;
    int mode;
    bool given, broken; /* the graph is the program's own; the capture is lost */
};
typedef struct { int type; uint64_t nanoseconds; CUgraph child; CUallocNode allocation; CUdeviceptr freed; } Step;
struct Node { Step step; struct Node *next; };
struct Graph { struct Node *first, *last; size_t count; };

struct Stream *stream_of(CUstream given);
CUresult work_of(CUstream given, uint64_t nanoseconds, uint32_t ranks);
CUresult work(CUstream given, uint64_t nanoseconds);
void wait_for(const When *when);
bool is_over(const When *when);
uint64_t when_of(const When *when);
/* Whether a call that may not be made while a capture is under way in the strict mode, is made. */
CUresult unsafe_now(void);
CUgraphNode graph_add(CUgraph graph, Step step);
