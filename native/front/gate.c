/* The gate before work: each launch waits for the share's lease, and is charged what its like took.
 *
 * What a kernel, graph or copy costs is learnt from pairs of events around some of its launches.
 * No more than AHEAD of work is in flight, so that a lease ends within that time and one kernel. */
#include <stdlib.h>

#include "front.h"

enum { AHEAD = 2000000, STEP = 500000, EVERY = 32, KINDS = 8192, SAMPLES = 4, LONG = 1000000, IDLE = 100000000 };
static const uint64_t SECOND = 1000000000ULL, PERIOD = 20000000ULL;

typedef struct {
    uint64_t kind, cost, charged;
    uint64_t samples[SAMPLES];
    uint32_t launches, measured;
    uint32_t charges; /* launches that were charged by the present cost */
    CUevent from, to;
    CUcontext context;
    bool pending;
} Kind;

static Kind *kinds[KINDS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int captures;
/* By card: launched work that was marked, and when it should have run. */
static Kind *marked[SHARE_CARDS];
static uint64_t marked_due[SHARE_CARDS];
/* By card: when something long turned out to have run uncharged; leases planned before are over. */
static uint64_t owing[SHARE_CARDS];

void capture_began(void) { __atomic_add_fetch(&captures, 1, __ATOMIC_RELAXED); }
void capture_ended(void) { __atomic_sub_fetch(&captures, 1, __ATOMIC_RELAXED); }

/* Never forgotten: programs have few kernels; when the table is full the last place is shared. */
static Kind *kind_of(uint64_t kind) {
    size_t start = (kind * 0x9E3779B97F4A7C15ULL) >> 51;
    for (size_t i = 0; i < 64; i++) {
        Kind **place = &kinds[(start + i) % KINDS], *one = __atomic_load_n(place, __ATOMIC_ACQUIRE);
        if (one && one->kind == kind) return one;
        if (one) continue;
        Kind *made = calloc(1, sizeof *made);
        if (!made) abort();
        made->kind = kind;
        if (__atomic_compare_exchange_n(place, &one, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return made;
        free(made);
        if (one->kind == kind) return one;
    }
    return kinds[(start + 63) % KINDS];
}

/* --- costs --- */

/* With the lock held: take in what the events of one kind say, if they happened. */
static void take_in(Kind *one, ShareCard *card) {
    float milliseconds;
    CUcontext now_in = NULL;
    if (!one->pending || REAL(cuCtxGetCurrent)(&now_in) || now_in != one->context) return;
    if (REAL(cuEventQuery)(one->to) || REAL(cuEventElapsedTime)(&milliseconds, one->from, one->to)) return;
    uint64_t took = (uint64_t)((double)milliseconds * 1e6);
    one->pending = false;
    one->samples[one->measured++ % SAMPLES] = took;
    uint64_t least = took;
    for (uint32_t i = 0; i < SAMPLES && i < one->measured; i++)
        if (one->samples[i] < least) least = one->samples[i];
    /* Others that overran into the sample only make it longer: the least is the truest, and what
     * was charged by a worse one is given back. */
    if (one->cost > least) {
        uint64_t too_much = (one->cost - least) * one->charges;
        __atomic_sub_fetch(&card->busy, too_much < card->busy ? too_much : card->busy, __ATOMIC_RELAXED);
    }
    if (one->cost != least) one->charges = 0;
    one->cost = least ? least : 1;
    if (!one->charged) {
        one->charges++;
        __atomic_add_fetch(&card->busy, took, __ATOMIC_RELAXED);
        if (took > LONG) owing[card - share->card] = clock_now();
    }
    uint32_t micros = (uint32_t)(least / 1000 < UINT32_MAX ? least / 1000 : UINT32_MAX);
    if (micros > card->longest) card->longest = micros;
}

/* --- leases --- */

static Lease lease_at(const ShareCard *card, uint64_t now) {
    for (;;) {
        uint32_t before = __atomic_load_n(&card->sequence, __ATOMIC_ACQUIRE);
        Lease found = card->leases[before & 1];
        if (found.from > now && card->leases[~before & 1].until) found = card->leases[~before & 1];
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (__atomic_load_n(&card->sequence, __ATOMIC_RELAXED) == before) return found;
    }
}

/* Nobody renews the lease: its own part of each period, in step with no other share. */
static Lease alone(const ShareCard *card) {
    static bool told;
    if (!told) {
        told = true;
        __atomic_add_fetch(&share->fallback, 1, __ATOMIC_RELAXED);
        if (card->compute)
            fprintf(stderr, "lockstep: the node's agent grants no leases; %u %% of each 20 ms are used, out of step "
                            "with other shares\n", card->compute);
        else
            fprintf(stderr, "lockstep: the node's agent grants no leases; the GPU's time is used without limit\n");
    }
    if (!card->compute) return (Lease){.flags = LEASE_OPEN, .until = UINT64_MAX};
    return (Lease){.period = PERIOD, .length = PERIOD / 100 * card->compute, .until = UINT64_MAX};
}

/* When work may start: now, or the moment to look again. */
static uint64_t may_start(const ShareCard *card, uint64_t now) {
    Lease lease = lease_at(card, now);
    if (lease.flags & LEASE_OPEN && lease.until > now) return now;
    if (lease.until <= now) {
        /* The agent gets as long for the first lease as for the next. */
        static uint64_t first;
        if (!first) first = now;
        if (!lease.until && now < first + 2 * SECOND) return first + 2 * SECOND;
        lease = alone(card);
        if (lease.flags & LEASE_OPEN) return now;
    } else if (owing[card - share->card] && lease.from < owing[card - share->card] + AHEAD) {
        return now + PERIOD / 10;
    } else {
        owing[card - share->card] = 0;
    }
    uint64_t tail = __atomic_load_n(&card->tail, __ATOMIC_RELAXED);
    if (tail < now) tail = now;
    if (tail > now + AHEAD) return tail - AHEAD + STEP;
    if (!lease.period || !lease.length || lease.flags & LEASE_PAUSED) return now + PERIOD;
    uint64_t begun = now - (now - lease.from) % lease.period, start = begun + lease.offset;
    uint64_t end = start + lease.length;
    if (now < start) return start;
    if (lease.length >= lease.period) return now;
    /* The last one may run beyond the end, else short windows would be left empty; it is charged. */
    if (tail < end) return now;
    return start + lease.period;
}

/* When the newest lease begins, if that is still to come. */
static uint64_t next_lease(const ShareCard *card, uint64_t now) {
    uint64_t from = card->leases[__atomic_load_n(&card->sequence, __ATOMIC_ACQUIRE) & 1].from;
    return from > now ? from : UINT64_MAX;
}

static void ring(void) {
    if (!bell) return;
    __atomic_add_fetch(bell, 1, __ATOMIC_RELEASE);
    clock_wake(bell, bell_name);
}

static void wait_at_gate(ShareCard *card, uint64_t cost) {
    uint64_t began_at = 0;
    bool fresh_start = __atomic_load_n(&card->tail, __ATOMIC_RELAXED) + IDLE < clock_now();
    for (;;) {
        uint32_t word = __atomic_load_n(&share->wake, __ATOMIC_ACQUIRE);
        uint64_t now = clock_now(), when = may_start(card, now);
        if (when <= now) {
            uint64_t tail = __atomic_load_n(&card->tail, __ATOMIC_RELAXED);
            uint64_t next = (tail > now ? tail : now) + cost;
            if (!__atomic_compare_exchange_n(&card->tail, &tail, next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) continue;
            if (began_at) {
                __atomic_sub_fetch(&card->waiting, 1, __ATOMIC_RELAXED);
                __atomic_add_fetch(&card->throttled, now - began_at, __ATOMIC_RELAXED);
            } else if (fresh_start) {
                ring();
            }
            return;
        }
        if (!began_at) {
            began_at = now;
            /* Its time may be lent to others, who have to give it back. */
            bool first = !__atomic_fetch_add(&card->waiting, 1, __ATOMIC_RELAXED);
            if (first && (fresh_start || owing[card - share->card] || !lease_at(card, now).length)) ring();
        }
        uint64_t fresh = next_lease(card, now);
        if (when > fresh) when = fresh;
        if (when > now + SECOND) when = now + SECOND;
        clock_wait(&share->wake, word, when, share_name);
    }
}

/* --- one launch --- */

static CUresult mark(CUevent event, CUstream stream, bool per_thread) {
    return per_thread ? REAL(cuEventRecord_ptsz)(event, stream) : REAL(cuEventRecord)(event, stream);
}

static bool capturing(CUstream stream) {
    int state = 0;
    return __atomic_load_n(&captures, __ATOMIC_RELAXED) && !REAL(cuStreamIsCapturing)(stream, &state) && state;
}

/* Something tiny before the events of work that finds the card idle of its own: it ends when the card is this context's, so that
 * what other shares still run is not taken for the kind's own time. */
static void probe(const Kind *one, CUstream stream, bool per_thread) {
    static struct { CUcontext context; CUdeviceptr at; } places[8];
    for (size_t i = 0; i < 8; i++) {
        if (!places[i].at) {
            if (REAL(cuMemAlloc_v2)(&places[i].at, 1)) return;
            places[i].context = one->context;
        }
        if (places[i].context != one->context) continue;
        if (per_thread) REAL(cuMemsetD8Async_ptsz)(places[i].at, 0, 1, stream);
        else REAL(cuMemsetD8Async)(places[i].at, 0, 1, stream);
        return;
    }
}

/* With the lock held: put an event before a launch whose cost is to be learnt. */
static bool begin_sample(Kind *one, CUstream stream, bool per_thread, bool idle) {
    CUcontext now_in = NULL;
    if (REAL(cuCtxGetCurrent)(&now_in)) return false;
    if (one->from && one->context != now_in) return false;
    if (!one->from && (REAL(cuEventCreate)(&one->from, 0) || REAL(cuEventCreate)(&one->to, 0))) return false;
    one->context = now_in;
    if (idle) probe(one, stream, per_thread);
    return !mark(one->from, stream, per_thread);
}

/* With the lock held, but let go of meanwhile. */
static void wait_for(Kind *one, ShareCard *card) {
    CUevent to = one->to;
    pthread_mutex_unlock(&lock);
    uint64_t from = clock_now();
    __atomic_add_fetch(&card->waiting, 1, __ATOMIC_RELAXED);
    REAL(cuEventSynchronize)(to);
    __atomic_sub_fetch(&card->waiting, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&card->throttled, clock_now() - from, __ATOMIC_RELAXED);
    pthread_mutex_lock(&lock);
}

Pass gate_enter(uint64_t kind, CUstream stream, bool per_thread) {
    int card = share_of_context();
    if (card < 0 || capturing(stream)) return (Pass){.card = -1};
    ShareCard *account = &share->card[card];
    Kind *one = kind_of(kind);
    pthread_mutex_lock(&lock);
    /* The first launch of its kind tells what the second costs. */
    if (one->pending && !one->cost) wait_for(one, account);
    /* Work that has not run when it should have, for another's sake, is still in flight. */
    Kind *mark = marked[card];
    if (mark && mark->pending && clock_now() > marked_due[card] + AHEAD && mark->context == one->context) wait_for(mark, account);
    if (one->pending) take_in(one, account);
    uint64_t cost = one->cost;
    bool sample = !one->pending && (one->measured < SAMPLES || cost > LONG || one->launches % EVERY == 0);
    one->launches++;
    if (cost) one->charges++;
    pthread_mutex_unlock(&lock);
    wait_at_gate(account, cost);
    __atomic_add_fetch(&account->busy, cost, __ATOMIC_RELAXED);
    __atomic_add_fetch(&account->launches, 1, __ATOMIC_RELAXED);
    Pass pass = {card, NULL, cost};
    if (sample) {
        pthread_mutex_lock(&lock);
        /* Behind work of its own nobody else's can come in between. */
        bool idle = __atomic_load_n(&account->tail, __ATOMIC_RELAXED) <= clock_now() + cost;
        if (!one->pending && begin_sample(one, stream, per_thread, idle)) pass.measured = one;
        pthread_mutex_unlock(&lock);
    }
    return pass;
}

void gate_leave(Pass pass, CUstream stream, bool per_thread, CUresult result) {
    Kind *one = pass.measured;
    if (!one || result) return;
    pthread_mutex_lock(&lock);
    if (!mark(one->to, stream, per_thread)) {
        one->pending = true;
        one->charged = pass.charged;
        if (!marked[pass.card] || !marked[pass.card]->pending || marked[pass.card] == one) {
            marked[pass.card] = one;
            marked_due[pass.card] = __atomic_load_n(&share->card[pass.card].tail, __ATOMIC_RELAXED);
        }
    }
    pthread_mutex_unlock(&lock);
}
