/* The stub driver's streams and events, and how work takes its turn on the card: first come, first
 * served, or, where the card's `overlap` is 1, the streams of a process at the same time. */
#include <stdlib.h>

#include "../nvml/state.h"
#include "streams.h"

struct Event { CUcontext context; uint32_t round; When when; };

uint64_t flag_set[FLAGS];
static struct Stream legacy[WORLD_CARDS];

struct Stream *stream_of(CUstream given) {
    int card = current_card();
    if (card < 0) return NULL;
    /* The default streams are called 0, 1 and 2. */
    if ((uintptr_t)given <= 2) {
        if (!legacy[card].context) legacy[card].when.flag = -1;
        legacy[card].context = current;
        legacy[card].round = current->round;
        return &legacy[card];
    }
    if (given->context != current || given->round != current->round) {
        misused("a stream of another context, or of one that has ended");
        return NULL;
    }
    return given;
}

/* --- time --- */

uint64_t when_of(const When *when) {
    if (when->flag < 0) return when->end;
    uint64_t set = __atomic_load_n(&flag_set[when->flag], __ATOMIC_ACQUIRE);
    return set ? set + when->after : UINT64_MAX;
}
bool is_over(const When *when) { return when_of(when) <= lockstepNow(); }
void wait_for(const When *when) {
    while (!is_over(when)) {
        uint64_t end = when_of(when), now = lockstepNow();
        lockstepWait(NULL, 0, end == UINT64_MAX ? now + 100000 : end, 0);
    }
}

/* A stream whose kernel spun goes on from when it ended. */
static void settle(When *when) {
    if (when->flag < 0 || when_of(when) == UINT64_MAX) return;
    when->end = when_of(when);
    when->flag = -1;
}

/* Be there for a collective; its card is busy from its own turn until the last rank's. */
static void meet(World *w, struct Stream *stream, int card, uint32_t ranks) {
    const char *group = getenv("LOCKSTEP_CUDA_GROUP");
    uint64_t which = (uint64_t)(group ? atoi(group) : 0) % WORLD_CARDS;
    Meeting *here = &w->meetings[which];
    shared_lock(&w->lock);
    uint64_t turn = lockstepNow(), round = here->round;
    if (stream->when.end > turn) turn = stream->when.end;
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

static bool overlaps(int card) {
    ull value = 0;
    return card_integer(card, "overlap", &value) && value;
}

/* When the card turns to this process: not while it works for another. With the lock held. */
static uint64_t turn_of(World *w, int card, uint64_t from) {
    const Tenant *me = world_me(w);
    bool others = me && w->turn[card] != me - w->process + 1;
    return others && w->cards[card].busy_until > from ? w->cards[card].busy_until : from;
}

/* Put so much work on the card; the host waits where the stream's queue is full. */
CUresult work_of(CUstream given, uint64_t nanoseconds, uint32_t ranks) {
    struct Stream *stream = stream_of(given);
    int card = current_card();
    World *w = world();
    if (!stream || card < 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (stream->captured) {
        graph_add(stream->captured, (Step){.nanoseconds = nanoseconds});
        return CUDA_SUCCESS;
    }
    if (ranks) meet(w, stream, card, ranks);
    settle(&stream->when);
    bool overlap = overlaps(card);
    shared_lock(&w->lock);
    Tenant *me = world_me(w);
    if (me) me->busy[card] += me->last[card] = nanoseconds;
    if (stream->when.flag >= 0) {
        stream->when.after += nanoseconds;
        shared_unlock(&w->lock);
        return CUDA_SUCCESS;
    }
    shared_unlock(&w->lock);
    uint64_t oldest = stream->queue[stream->count % QUEUE];
    while (oldest > lockstepNow()) lockstepWait(NULL, 0, oldest, 0);
    shared_lock(&w->lock);
    uint64_t start = lockstepNow();
    if (stream->when.end > start) start = stream->when.end;
    start = turn_of(w, card, start);
    if (!overlap && w->cards[card].busy_until > start) start = w->cards[card].busy_until;
    uint64_t end = start + nanoseconds;
    if (end > w->cards[card].busy_until) w->cards[card].busy_until = end;
    if (me) w->turn[card] = (uint32_t)(me - w->process) + 1;
    shared_unlock(&w->lock);
    stream->when.end = end;
    stream->queue[stream->count++ % QUEUE] = end;
    return CUDA_SUCCESS;
}
CUresult work(CUstream given, uint64_t nanoseconds) { return work_of(given, nanoseconds, 0); }

/* --- streams --- */

CUresult cuStreamCreate(CUstream *out, unsigned flags) {
    (void)flags;
    if (!current) return CUDA_ERROR_INVALID_CONTEXT;
    *out = calloc(1, sizeof **out);
    if (!*out) return CUDA_ERROR_OUT_OF_MEMORY;
    (*out)->context = current;
    (*out)->round = current->round;
    (*out)->when.flag = -1;
    return CUDA_SUCCESS;
}
CUresult cuStreamCreateWithPriority(CUstream *out, unsigned flags, int priority) {
    (void)priority;
    return cuStreamCreate(out, flags);
}
CUresult cuStreamDestroy_v2(CUstream stream) {
    if ((uintptr_t)stream <= 2) return CUDA_ERROR_INVALID_HANDLE;
    free(stream);
    return CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream given) {
    struct Stream *stream = stream_of(given);
    if (!stream) return CUDA_ERROR_INVALID_CONTEXT;
    wait_for(&stream->when);
    return CUDA_SUCCESS;
}
CUresult cuStreamQuery(CUstream given) {
    struct Stream *stream = stream_of(given);
    if (!stream) return CUDA_ERROR_INVALID_CONTEXT;
    return is_over(&stream->when) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
CUresult cuStreamWaitEvent(CUstream given, CUevent event, unsigned flags) {
    struct Stream *stream = stream_of(given);
    (void)flags;
    if (!stream) return CUDA_ERROR_INVALID_CONTEXT;
    if (stream->captured) return CUDA_SUCCESS;
    settle(&stream->when);
    uint64_t at = when_of(&event->when);
    if (at == UINT64_MAX) stream->when = event->when;
    else if (stream->when.flag < 0 && at > stream->when.end) stream->when.end = at;
    return CUDA_SUCCESS;
}
CUresult cuCtxSynchronize(void) {
    World *w = world();
    int card = current_card();
    if (card < 0) return CUDA_ERROR_INVALID_CONTEXT;
    When all = {.end = __atomic_load_n(&w->cards[card].busy_until, __ATOMIC_ACQUIRE), .flag = -1};
    wait_for(&all);
    return CUDA_SUCCESS;
}

/* --- events: they end with their context --- */

static bool dead(CUevent event, const char *what) {
    if (!event->context->dead && event->round == event->context->round) return false;
    misused(what);
    return true;
}
CUresult cuEventCreate(CUevent *out, unsigned flags) {
    (void)flags;
    if (!current) return CUDA_ERROR_INVALID_CONTEXT;
    *out = calloc(1, sizeof **out);
    if (!*out) return CUDA_ERROR_OUT_OF_MEMORY;
    **out = (struct Event){current, current->round, {.flag = -1}};
    return CUDA_SUCCESS;
}
CUresult cuEventDestroy_v2(CUevent event) { free(event); return CUDA_SUCCESS; }
CUresult cuEventRecord(CUevent event, CUstream given) {
    struct Stream *stream = stream_of(given);
    if (!stream) return CUDA_ERROR_INVALID_CONTEXT;
    if (dead(event, "cuEventRecord of an event whose context has ended")) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->captured) {
        graph_add(stream->captured, (Step){.type = 6});
        return CUDA_SUCCESS;
    }
    settle(&stream->when);
    event->when = stream->when;
    if (event->when.flag >= 0) return CUDA_SUCCESS;
    World *w = world();
    shared_lock(&w->lock);
    uint64_t now = lockstepNow();
    if (event->when.end < now) event->when.end = now;
    event->when.end = turn_of(w, current_card(), event->when.end);
    shared_unlock(&w->lock);
    return CUDA_SUCCESS;
}
CUresult cuEventQuery(CUevent event) {
    if (dead(event, "cuEventQuery of an event whose context has ended")) return CUDA_ERROR_INVALID_HANDLE;
    CUresult unsafe = unsafe_now();
    if (unsafe) return unsafe;
    return is_over(&event->when) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
CUresult cuEventSynchronize(CUevent event) {
    if (dead(event, "cuEventSynchronize of an event whose context has ended")) return CUDA_ERROR_INVALID_HANDLE;
    wait_for(&event->when);
    return CUDA_SUCCESS;
}
CUresult cuEventElapsedTime(float *out, CUevent from, CUevent to) {
    if (dead(from, "cuEventElapsedTime of an event whose context has ended")) return CUDA_ERROR_INVALID_HANDLE;
    if (!is_over(&from->when) || !is_over(&to->when)) return CUDA_ERROR_NOT_READY;
    *out = (float)(((double)when_of(&to->when) - (double)when_of(&from->when)) / 1e6);
    return CUDA_SUCCESS;
}
