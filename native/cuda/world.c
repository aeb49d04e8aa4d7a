/* The shared machine and its clock. */
#define _GNU_SOURCE
#include "world.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>

static World *mapped;
static int file = -1;
static Tenant *mine;
static __thread Party *party;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void after_fork(void) { mine = NULL; party = NULL; }

static void open_world(const char *path) {
    mapped = shared_map(path, sizeof(World), offsetof(World, lock), true, &file);
}

static void map(void) {
    const char *path = getenv("LOCKSTEP_CUDA_WORLD");
    if (path) open_world(path);
    pthread_atfork(NULL, NULL, after_fork);
}

World *world(void) {
    pthread_once(&once, map);
    return mapped;
}

void lockstepOpen(const char *path) {
    pthread_once(&once, map);
    if (mapped) munmap(mapped, sizeof(World));
    if (mapped) close(file);
    open_world(path);
    mine = NULL;
    party = NULL;
}

static off_t life_of(const World *w, const Tenant *one) { return (const char *)one - (const char *)w; }

Tenant *world_me(World *w) {
    for (uint32_t i = 0; !mine && i < WORLD_PROCESSES; i++) {
        Tenant *one = &w->process[i];
        if (!life_take(file, life_of(w, one))) continue;
        memset(one, 0, sizeof *one);
        one->pid = getpid();
        if (i >= w->processes) w->processes = i + 1;
        mine = one;
    }
    return mine;
}

int world_holder(World *w, const Tenant *one) { return one->pid ? life_holder(file, life_of(w, one)) : -1; }

void world_bury(World *w) {
    for (uint32_t i = 0; i < w->processes; i++) {
        Tenant *one = &w->process[i];
        if (one->pid && one != mine && world_holder(w, one) < 0) memset(one, 0, sizeof *one);
    }
}

uint64_t world_used(World *w, int card) {
    uint64_t used = 0;
    for (uint32_t i = 0; i < w->processes; i++) used += w->process[i].pid ? w->process[i].bytes[card] : 0;
    return used;
}

/* --- the clock --- */

static uint64_t machine_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

static void futex_wait(const uint32_t *word, uint32_t expected, uint64_t until) {
    struct timespec t = {(time_t)(until / 1000000000ULL), (long)(until % 1000000000ULL)};
    syscall(SYS_futex, word, FUTEX_WAIT_BITSET, expected, until ? &t : NULL, NULL, FUTEX_BITSET_MATCH_ANY);
}

static void futex_wake(uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0); }

uint64_t lockstepNow(void) {
    World *w = world();
    return w && w->stepped ? __atomic_load_n(&w->now, __ATOMIC_ACQUIRE) : machine_now();
}

static Party *join(World *w) {
    for (int i = 0; !party && i < WORLD_PARTIES; i++)
        if (!w->parties[i].pid) {
            party = &w->parties[i];
            *party = (Party){.pid = getpid()};
            w->joined++;
        }
    if (!party) abort();
    return party;
}

static void release(World *w, Party *one) {
    one->until = one->word = 0;
    w->waiting--;
    __atomic_store_n(&one->waits, 0, __ATOMIC_RELEASE);
    futex_wake(&one->waits);
}

/* With the lock held: when every party waits, go to the next moment at which one need not. */
static void step(World *w) {
    if (w->waiting < w->joined || w->joined < w->expected) return;
    uint64_t next = UINT64_MAX;
    for (int i = 0; i < WORLD_PARTIES; i++)
        if (w->parties[i].pid && w->parties[i].until && w->parties[i].until < next) next = w->parties[i].until;
    if (next == UINT64_MAX) return;
    if (next > w->now) __atomic_store_n(&w->now, next, __ATOMIC_RELEASE);
    for (int i = 0; i < WORLD_PARTIES; i++)
        if (w->parties[i].pid && w->parties[i].until && w->parties[i].until <= next) {
            /* One at a time, in the order of joining, so that equal moments have one order. */
            release(w, &w->parties[i]);
            break;
        }
}

/* A party that was killed must not stop the clock. With the lock held. */
static void bury(World *w) {
    for (int i = 0; i < WORLD_PARTIES; i++) {
        Party *one = &w->parties[i];
        if (!one->pid || began(one->pid)) continue;
        if (one->waits) w->waiting--;
        *one = (Party){0};
        w->joined--;
        if (w->expected > w->joined) w->expected = w->joined;
    }
    step(w);
}

void lockstepWait(const uint32_t *word, uint32_t expected, uint64_t until, uint64_t name) {
    World *w = world();
    if (!w || !w->stepped) {
        static const uint32_t never;
        futex_wait(word ? word : &never, word ? expected : 0, until);
        return;
    }
    if (name == WORLD_BELL) word = &w->bell;
    shared_lock(&w->lock);
    Party *me = join(w);
    if ((word && *word != expected) || (until && until <= w->now && w->joined >= w->expected)) {
        shared_unlock(&w->lock);
        return;
    }
    me->until = until;
    me->word = name;
    me->waits = 1;
    w->waiting++;
    step(w);
    shared_unlock(&w->lock);
    while (__atomic_load_n(&me->waits, __ATOMIC_ACQUIRE)) {
        futex_wait(&me->waits, 1, machine_now() + 500000000ULL);
        if (!__atomic_load_n(&me->waits, __ATOMIC_ACQUIRE)) break;
        shared_lock(&w->lock);
        bury(w);
        shared_unlock(&w->lock);
    }
}

void lockstepJoin(void) {
    World *w = world();
    if (!w || !w->stepped) return;
    shared_lock(&w->lock);
    if (!party) w->expected++;
    join(w);
    shared_unlock(&w->lock);
}

uint32_t lockstepHeard(void) {
    World *w = world();
    return w ? __atomic_load_n(&w->bell, __ATOMIC_ACQUIRE) : 0;
}

void lockstepWake(uint32_t *word, uint64_t name) {
    World *w = world();
    if (!w || !w->stepped) {
        if (word) futex_wake(word);
        return;
    }
    shared_lock(&w->lock);
    if (name == WORLD_BELL) w->bell++;
    for (int i = 0; i < WORLD_PARTIES; i++)
        if (w->parties[i].pid && w->parties[i].waits && name && w->parties[i].word == name) release(w, &w->parties[i]);
    shared_unlock(&w->lock);
}

__attribute__((destructor)) void lockstepLeave(void) {
    World *w = mapped;
    if (!w || !party) return;
    shared_lock(&w->lock);
    *party = (Party){0};
    party = NULL;
    w->joined--;
    if (w->expected > w->joined) w->expected = w->joined;
    step(w);
    shared_unlock(&w->lock);
}
