/* Work in flight. An event follows launches, in the same stream and at once, so that it orders
 * nothing that the launch did not; the watcher sees when it is complete. */
#define _GNU_SOURCE
#include <sys/syscall.h>

#include "meter.h"

Flight flights[SHARE_CARDS];
Piece pieces[PIECES];
Tail tails[TAILS];
Pool pools[POOLS];
pthread_mutex_t meter_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t meter_watching = PTHREAD_MUTEX_INITIALIZER;
uint32_t meter_word;
static uint64_t serials;

static uint64_t this_thread(void) {
    static __thread uint64_t number;
    if (!number) number = (uint64_t)syscall(SYS_gettid);
    return number;
}

/* --- events --- */

static Pool *pool_of(CUcontext context) {
    Pool *unused = NULL;
    for (size_t i = 0; i < POOLS; i++) {
        if (pools[i].context == context) return &pools[i];
        if (!pools[i].context && !unused) unused = &pools[i];
    }
    if (unused && context) {
        *unused = (Pool){.context = context};
        return unused;
    }
    return NULL;
}

/* With the lock held. */
void keep(Pool *pool, CUevent event) {
    if (event && pool && pool->spares < EVENTS) pool->spare[pool->spares++] = event;
}

/* Once for a context, with its first launch. */
static void fill(CUcontext context) {
    CUevent made[EVENTS];
    unsigned count = 0;
    while (count < EVENTS && !REAL(cuEventCreate)(&made[count], 0)) count++;
    pthread_mutex_lock(&meter_lock);
    Pool *pool = pool_of(context);
    while (pool && count && pool->spares < EVENTS) pool->spare[pool->spares++] = made[--count];
    pthread_mutex_unlock(&meter_lock);
    while (count) REAL(cuEventDestroy_v2)(made[--count]);
}

static CUresult record(CUevent event, CUstream stream, bool per_thread) {
    return per_thread ? REAL(cuEventRecord_ptsz)(event, stream) : REAL(cuEventRecord)(event, stream);
}

/* --- streams --- */

bool quiet(const Tail *one) { return !one->launches && one->newest < 0 && !one->from; }

/* With the lock held. The default streams are called 0, 1 and 2; 2 is each thread's own. */
Tail *tail_of(CUcontext context, CUstream stream, bool per_thread, int card) {
    uint64_t thread = per_thread && (uintptr_t)stream <= 2 && (uintptr_t)stream != 1 ? this_thread() : 0;
    if ((uintptr_t)stream == 2) thread = this_thread();
    Tail *unused = NULL;
    for (size_t i = 0; i < TAILS; i++) {
        Tail *one = &tails[i];
        if (one->context == context && one->stream == stream && one->thread == thread) return one;
        if (!unused && (!one->context || quiet(one))) unused = one;
    }
    if (unused) *unused = (Tail){.context = context, .stream = stream, .thread = thread, .card = card, .newest = -1};
    return unused;
}

void flight_oldest(Flight *flight, const Piece *piece, uint64_t now) {
    uint64_t twice = 2 * flight->longest;
    flight->oldest = piece ? piece->serial : 0;
    flight->since = now;
    flight->oldest_expected = piece ? piece->expected : 0;
    flight->oldest_kind = piece ? piece->kind : 0;
    flight->patience = twice < PATIENCE ? PATIENCE : twice > LONGEST_PATIENCE ? LONGEST_PATIENCE : twice;
    flight->next_pass = now + flight->patience;
    flight->debt = 0;
}

/* With the lock held: what was launched in a stream becomes a piece that ends with an event. */
static bool close_tail(Tail *tail, Pool *pool, CUevent to, uint64_t now, uint64_t over) {
    int at = -1;
    for (int i = 0; i < PIECES && at < 0; i++)
        if (!pieces[i].flying) at = i;
    if (at < 0) return false;
    pieces[at] = (Piece){
        .flying = true, .card = tail->card, .before = tail->newest, .pool = pool, .tail = tail, .from = tail->from,
        .to = to, .serial = ++serials, .launched = tail->launched, .open = tail->launched, .kind = tail->kind,
        .others = tail->others, .of_kind = tail->of_kind, .expected = tail->expected, .unsure = tail->unsure, .over = over,
    };
    if (!tail->from && tail->newest < 0) pieces[at].begun = tail->launched;
    tail->newest = at;
    tail->from = NULL;
    tail->launches = tail->of_kind = 0;
    tail->others = tail->expected = tail->peak = 0;
    tail->unsure = false;
    tail->marked = now;
    Flight *flight = &flights[tail->card];
    if (!flight->oldest) flight_oldest(flight, &pieces[at], now);
    return true;
}

/* A context that ended may have given its address to another: the round tells them apart. */
static uint32_t rounds = 1;
static __thread CUcontext filled;
static __thread uint32_t filled_in;

static void have_events(CUcontext context) {
    uint32_t round = __atomic_load_n(&rounds, __ATOMIC_ACQUIRE);
    if (filled == context && filled_in == round) return;
    watch_start();
    pthread_mutex_lock(&meter_lock);
    Pool *pool = pool_of(context);
    bool lacks = pool && !pool->filled;
    if (lacks) pool->filled = true;
    pthread_mutex_unlock(&meter_lock);
    if (lacks) fill(context);
    filled = context;
    filled_in = round;
}

/* With the lock held: take a launch in. */
static void take_in(Tail *tail, const Pass *pass) {
    Guess guess = kind_guess(pass->kind);
    /* What runs beside others does not keep them waiting, the first of it in each stream. */
    uint64_t cost = guess.beside && quiet(tail) ? 0 : guess.cost;
    if (!tail->launches++) tail->launched = pass->at;
    if (tail->of_kind && tail->kind != pass->kind && (guess.known || tail->unsure)) {
        tail->others += cost;
    } else {
        /* What is not known yet is what the piece is to tell. */
        if (tail->kind != pass->kind) tail->others += tail->of_kind * tail->cost, tail->of_kind = 0;
        tail->kind = pass->kind;
        tail->cost = cost;
        tail->of_kind++;
    }
    tail->unsure |= !guess.sure;
    tail->expected += cost;
    tail->peak += guess.peak;
    Flight *flight = &flights[pass->card];
    flight->expected += cost;
    flight->unsure += !guess.sure;
    __atomic_store_n(&flight->count, flight->count + 1, __ATOMIC_RELAXED);
    tail->inside++;
}

/* Before a launch. A piece is measured from an event on, which comes when the card turns to this
 * context: what others had the card for meanwhile is not ours. */
void meter_began(Pass *pass, CUstream stream, bool per_thread) {
    have_events(pass->context);
    pthread_mutex_lock(&meter_lock);
    Pool *pool = pool_of(pass->context);
    Tail *tail = pool ? tail_of(pass->context, stream, per_thread, pass->card) : NULL;
    bool first = tail && !tail->launches && !tail->from && pool->spares > 1;
    CUevent from = first ? pool->spare[--pool->spares] : NULL;
    pass->taken = tail != NULL;
    if (tail) take_in(tail, pass);
    pthread_mutex_unlock(&meter_lock);
    if (!tail) __atomic_add_fetch(&account->card[pass->card].unheld, 1, __ATOMIC_RELAXED);
    if (!from) return;
    bool well = !record(from, stream, per_thread);
    pthread_mutex_lock(&meter_lock);
    pool = pool_of(pass->context);
    tail = pool ? tail_of(pass->context, stream, per_thread, pass->card) : NULL;
    if (well && tail && tail->launches && !tail->from) tail->from = from;
    else keep(pool, from);
    pthread_mutex_unlock(&meter_lock);
}

/* What was launched in a stream ends with an event, and becomes a piece. */
static void end_with(const Pass *pass, CUstream stream, bool per_thread, CUevent to) {
    uint64_t over = pass->waits == OVER ? clock_now() : 0;
    bool well = !record(to, stream, per_thread);
    pthread_mutex_lock(&meter_lock);
    Pool *pool = pool_of(pass->context);
    Tail *tail = pool ? tail_of(pass->context, stream, per_thread, pass->card) : NULL;
    if (!well) __atomic_add_fetch(&account->card[pass->card].unheld, 1, __ATOMIC_RELAXED);
    if (!well || !tail || !tail->launches || !close_tail(tail, pool, to, pass->at, over)) keep(pool, to);
    pthread_mutex_unlock(&meter_lock);
}

/* After a launch: an event follows it where that is due. */
void meter_launched(const Pass *pass, CUstream stream, bool per_thread, bool well) {
    CUevent to = NULL;
    if (!pass->taken) return;
    pthread_mutex_lock(&meter_lock);
    Pool *pool = pool_of(pass->context);
    Tail *tail = pool ? tail_of(pass->context, stream, per_thread, pass->card) : NULL;
    if (tail && tail->inside) tail->inside--;
    bool due = tail && tail->launches && (pass->waits || tail->unsure || tail->peak >= MARK || pass->at - tail->marked >= MARK);
    if (well && due && pool->spares) to = pool->spare[--pool->spares];
    pthread_mutex_unlock(&meter_lock);
    if (to) end_with(pass, stream, per_thread, to);
    watch_kick();
}

/* The program is about to wait for a stream of its own making: what is in it ends with an event. */
void meter_settle(CUstream stream, bool per_thread) {
    if (!granted || (uintptr_t)stream <= 2 || capturing(stream, per_thread)) return;
    CUcontext context = context_now();
    CUevent to = NULL;
    pthread_mutex_lock(&meter_lock);
    for (size_t i = 0; i < TAILS && context && !to; i++) {
        const Tail *one = &tails[i];
        Pool *pool = one->context == context && one->stream == stream && one->launches ? pool_of(context) : NULL;
        if (pool && pool->spares) to = pool->spare[--pool->spares];
    }
    pthread_mutex_unlock(&meter_lock);
    if (!to) return;
    bool well = !record(to, stream, per_thread);
    pthread_mutex_lock(&meter_lock);
    Pool *pool = pool_of(context);
    Tail *tail = NULL;
    for (size_t i = 0; i < TAILS && !tail; i++)
        if (tails[i].context == context && tails[i].stream == stream && tails[i].launches) tail = &tails[i];
    if (!well || !pool || !tail || !close_tail(tail, pool, to, clock_now(), 0))
        keep(pool, to);
    pthread_mutex_unlock(&meter_lock);
}

/* --- what ends --- */

void meter_forget_stream(CUstream stream) {
    pthread_mutex_lock(&meter_lock);
    for (size_t i = 0; i < TAILS; i++) {
        Tail *one = &tails[i];
        if (!one->context || one->stream != stream || (uintptr_t)stream <= 2) continue;
        /* Its pieces are measured on: their events are no stream's. */
        for (int k = 0; k < PIECES; k++)
            if (pieces[k].tail == one) pieces[k].tail = NULL;
        Pool *pool = pool_of(one->context);
        keep(pool, one->from);
        *one = (Tail){.newest = -1};
    }
    pthread_mutex_unlock(&meter_lock);
}

/* Events die with their context, and none is asked about while it goes. */
void meter_forget_context(CUcontext context) {
    pthread_mutex_lock(&meter_watching);
    pthread_mutex_lock(&meter_lock);
    for (int i = 0; i < PIECES; i++)
        if (pieces[i].flying && pieces[i].pool->context == context) pieces[i].flying = false;
    for (size_t i = 0; i < TAILS; i++)
        if (tails[i].context == context) tails[i] = (Tail){.newest = -1};
    for (size_t i = 0; i < POOLS; i++)
        if (pools[i].context == context) pools[i] = (Pool){0};
    __atomic_add_fetch(&rounds, 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&meter_lock);
    pthread_mutex_unlock(&meter_watching);
    watch_look();
}
