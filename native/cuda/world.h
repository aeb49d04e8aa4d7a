/* The stubbed machine as all its processes share it: a clock, cards, and who uses what of them.
 *
 * $LOCKSTEP_CUDA_WORLD is its file. The clock is the machine's, or, where the file says so, a
 * virtual one that moves only while every party waits: a run is then the same every time. */
#pragma once
#include "../common/shared.h"
#include "types.h"

enum { WORLD_CARDS = 16, WORLD_PROCESSES = 1200, WORLD_PARTIES = 128, WORLD_BELL = 0xBE11 };

/* A process lives while it holds a lock on its first byte; its number is that of its own PID namespace. */
typedef struct { int32_t pid, unused; uint64_t bytes[WORLD_CARDS], busy[WORLD_CARDS], last[WORLD_CARDS]; } Tenant;
typedef struct {
    int32_t pid;
    uint32_t waits;       /* also the word that its thread sleeps on */
    uint64_t until;       /* 0: until it is woken */
    uint64_t word;        /* what it waits for, as a number that all processes share */
} Party;
typedef struct { uint64_t busy_until, most_used; } WorldCard;
/* Ranks that meet in a collective: it begins on all cards when the last of them is there. */
typedef struct { uint32_t arrived, round; uint64_t begin; } Meeting;
typedef struct {
    SharedLock lock;
    uint32_t stepped;     /* 1: the clock is virtual */
    uint32_t expected;    /* it does not move before so many parties are there */
    uint32_t joined, waiting;
    uint64_t now;
    WorldCard cards[WORLD_CARDS];
    uint32_t processes, unused;
    Tenant process[WORLD_PROCESSES];
    Party parties[WORLD_PARTIES];
    Meeting meetings[WORLD_CARDS];
    uint32_t turn[WORLD_CARDS]; /* 1 + the process whose work is the last of each card's */
    uint32_t bell;        /* how often a bell was rung: WORLD_BELL is its name */
} World;

World *world(void);
/* Bytes in use on a card by all processes that are not buried. With the lock held. */
uint64_t world_used(World *w, int card);
/* The memory of the dead is free. With the lock held. */
void world_bury(World *w);
/* The number of a living process as this one counts, 0 when it is not seen from here; -1: it is dead. */
int world_holder(World *w, const Tenant *one);
Tenant *world_me(World *w);

uint64_t lockstepNow(void);
/* Wait until `*word` is no longer `expected` and was woken, or until a time (0: for ever).
 * `name` is what the word is called in all processes; 0 for none. */
void lockstepWait(const uint32_t *word, uint32_t expected, uint64_t until, uint64_t name);
void lockstepWake(uint32_t *word, uint64_t name);
/* Be one more party of the virtual clock than was expected: it does not move while this thread works. */
void lockstepJoin(void);
/* What the bell's word is now. */
uint32_t lockstepHeard(void);
/* Be on another machine from now on: for programs that look at several, one after another. */
void lockstepOpen(const char *path);
/* Leave the virtual clock to the others. */
void lockstepLeave(void);
