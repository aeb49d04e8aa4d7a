/* What the files of the meter share: work in flight by card, and how long kinds of work take. */
#pragma once
#include "front.h"

enum { PIECES = 256, TAILS = 64, POOLS = 16, EVENTS = 64 };
enum { MARK = 100000, AHEAD = 2000000, PATIENCE = 250000000, LONGEST_PATIENCE = 1000000000, MOST_UNSURE = 16, FIRST_GUESS = AHEAD / 2 };

/* Events of a context. One that is complete anchors the card's clock to the host's. */
typedef struct {
    CUcontext context;
    CUevent spare[EVENTS], anchor;
    unsigned spares;
    bool filled;
    uint64_t anchor_at, anchored;
} Pool;

/* A stream: what was launched in it after its last event. */
typedef struct {
    CUcontext context;
    CUstream stream;
    uint64_t thread;      /* of a per-thread stream */
    int card, newest;     /* the newest piece in flight, or -1 */
    CUevent from;
    uint64_t launched, marked, kind, cost, others, peak;
    uint32_t launches, of_kind;
    uint32_t inside;      /* calls of the driver that have not come back */
    bool unsure;          /* something of unknown length is among them */
    uint64_t expected, ended;
} Tail;

/* Work between two events of a stream. */
typedef struct {
    bool flying;
    int card, before;     /* the piece before it in its stream while that is in flight, or -1 */
    Pool *pool;
    Tail *tail;
    CUevent from, to;
    bool unsure, stalled; /* stalled: it waits for a piece that was overtaken */
    uint64_t over;        /* when the call came back that waited for it; 0: none did */
    uint64_t serial, launched, begun, open, kind, others, expected;
    uint32_t of_kind;
} Piece;

typedef struct { uint64_t from, to; } Span;

typedef struct {
    uint64_t expected, count; /* of all in flight */
    uint32_t unsure;          /* how much of it is of unknown length */
    uint64_t oldest, since, oldest_expected, oldest_kind; /* the oldest piece's number, and since when it is the oldest */
    uint64_t next_pass, patience, longest;
    bool begun;               /* the card is known to work for the oldest piece */
    uint64_t late, later;     /* how long the last first piece waited until the card turned to it, and the one before */
    uint64_t completed;       /* the number of the latest piece that is complete */
    uint32_t overtaken;       /* pieces that run while later ones are complete: they count for nothing else here */
    uint64_t stalled, stalled_since; /* what waits behind those, expected, and since when there are any */
    uint64_t debt, probed;    /* what passed because the oldest piece is overdue, and for which piece one did */
} Flight;

/* With the lock held: another piece is the oldest in flight. */
void flight_oldest(Flight *flight, const Piece *piece, uint64_t now);

extern Flight flights[SHARE_CARDS];
extern Piece pieces[PIECES];
extern Tail tails[TAILS];
extern Pool pools[POOLS];
extern pthread_mutex_t meter_lock;     /* never held in a call of the driver */
extern pthread_mutex_t meter_watching; /* held by the watcher while it asks about events */

void keep(Pool *pool, CUevent event);

/* With the lock held: the stream of a launch, and whether nothing of it is in flight. */
Tail *tail_of(CUcontext context, CUstream stream, bool per_thread, int card);
bool quiet(const Tail *one);

/* kinds.c, with the lock held: nanoseconds that a launch of a kind takes, and the most seen lately.
 * It is not sure before some were measured, nor where some took much longer than most. */
typedef struct { uint64_t cost, peak; bool known, sure, wild, beside; } Guess;
Guess kind_guess(uint64_t kind);
/* Work of this kind was seen to run beside later work: it may wait for it. */
void kind_beside(uint64_t kind);
void kind_learn(uint64_t kind, uint64_t took);

/* timeline.c */
uint64_t timeline_add(int card, Span span);
void timeline_clear(void);

/* watch.c */
void watch_start(void);
void watch_kick(void);
void watch_look(void);
