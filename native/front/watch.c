/* The watcher: a thread that asks about events of work in flight, and tells the share's account how
 * long the card worked for this process. The launch path never asks the driver about work. */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#include "meter.h"

enum { FAR = 250000, SLOW = 1000000, RELAXED = 2 };
static uint32_t kick, stopping, ended, started;
static bool asleep;

typedef struct { int at; Piece piece; bool from_done, done, lost; uint64_t seen, begun, ended; double took; } Seen;

uint64_t meter_name(void) { return (uint64_t)getpid() << 32 | 7; }
static uint64_t kick_name(void) { return (uint64_t)getpid() << 32 | 8; }

/* --- asking --- */

/* When an event came, on the host's clock: no later than it was seen, no earlier than it was not. */
static uint64_t came(Pool *pool, CUevent event, uint64_t open, uint64_t seen) {
    float milliseconds = 0;
    if (!pool->anchor || REAL(cuEventElapsedTime)(&milliseconds, pool->anchor, event)) return seen;
    uint64_t at = pool->anchor_at + (uint64_t)((double)milliseconds * 1e6);
    if (at > seen) {
        pool->anchor_at -= at - seen;
        return seen;
    }
    if (at < open) {
        pool->anchor_at += open - at;
        return open;
    }
    return at;
}

/* When the first of a piece's events came; some drivers give one that is alone an earlier time. */
static uint64_t began_at(Piece *piece) {
    float milliseconds = 0;
    uint64_t now = clock_now(), at = now;
    const Pool *pool = piece->pool;
    if (pool->anchor && !REAL(cuEventElapsedTime)(&milliseconds, pool->anchor, piece->from))
        at = pool->anchor_at + (uint64_t)((double)milliseconds * 1e6);
    return at < piece->launched ? piece->launched : at > now ? now : at;
}

static void ask(Seen *one, bool before_done) {
    Piece *piece = &one->piece;
    float milliseconds = 0;
    if (piece->from && !piece->begun) {
        CUresult result = REAL(cuEventQuery)(piece->from);
        one->from_done = !result;
        if (!result) one->begun = began_at(piece);
        one->lost = result && result != CUDA_ERROR_NOT_READY;
    }
    if (!before_done || one->lost) return;
    uint64_t asked = clock_now();
    CUresult result = REAL(cuEventQuery)(piece->to);
    one->seen = clock_now();
    one->done = !result;
    one->lost = result && result != CUDA_ERROR_NOT_READY;
    if (!one->done) {
        piece->open = asked;
        return;
    }
    one->ended = came(piece->pool, piece->to, piece->open, one->seen);
    if (piece->from && !REAL(cuEventElapsedTime)(&milliseconds, piece->from, piece->to)) one->took = (double)milliseconds * 1e6;
    if (!piece->over) return;
    /* The event came when the card turned to this context again; the work was over before. */
    uint64_t begun = piece->begun ? piece->begun : one->begun, within = piece->over - piece->launched;
    /* It may have waited for the card before it began, too; when that was is less exact. */
    if (begun && begun < piece->over && piece->over - begun + SLOW < within) within = piece->over - begun;
    if (one->took > (double)within) one->took = (double)within;
    if (one->ended > piece->over) one->ended = piece->over;
}

static void ask_all(Seen *seen, int count) {
    CUcontext now_in = NULL;
    for (int i = 0; i < count; i++) {
        Piece *piece = &seen[i].piece;
        if (piece->pool->context != now_in) {
            now_in = piece->pool->context;
            if (REAL(cuCtxSetCurrent)(now_in)) {
                seen[i].lost = true;
                now_in = NULL;
                continue;
            }
        }
        bool before_done = piece->before < 0;
        for (int k = 0; k < i && !before_done; k++)
            if (seen[k].at == piece->before) before_done = seen[k].done;
        ask(&seen[i], before_done);
    }
}

/* --- telling --- */

/* The container's processes may work at once; together they are told no more time than passed. */
static void charge(int card, uint64_t length, uint64_t from, uint64_t now) {
    AccountCard *to = &account->card[card];
    uint64_t covered = __atomic_load_n(&to->covered, __ATOMIC_RELAXED), start, taken;
    do {
        start = covered > from && covered <= now + SLOW ? covered : from;
        taken = now > start ? now - start : 0;
        if (taken > length) taken = length;
    } while (!__atomic_compare_exchange_n(&to->covered, &covered, start + taken, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    __atomic_add_fetch(&to->busy, taken, __ATOMIC_RELAXED);
}

/* With the lock held: a piece is complete. */
static void complete(Seen *one) {
    Piece *piece = &pieces[one->at];
    Pool *pool = piece->pool;
    uint64_t begun = piece->begun;
    if (one->took > 0 && one->took < (double)(one->ended - piece->launched)) begun = one->ended - (uint64_t)one->took;
    if (begun < piece->launched) begun = piece->launched;
    if (begun > one->ended) begun = one->ended;
    piece->begun = begun;
    uint64_t took = one->ended - begun;
    if (piece->of_kind) kind_learn(piece->kind, took > piece->others ? (took - piece->others) / piece->of_kind : 1);
    Flight *flight = &flights[piece->card];
    if (piece->from) flight->later = flight->late, flight->late = begun - piece->launched;
    if (took > flight->longest) flight->longest = took;
    if (took > account->card[piece->card].longest) account->card[piece->card].longest = took;
    for (int i = 0; i < PIECES; i++)
        if (pieces[i].flying && pieces[i].before == one->at) {
            pieces[i].before = -1;
            if (!pieces[i].from) pieces[i].begun = pieces[i].launched > one->ended ? pieces[i].launched : one->ended;
        }
    if (piece->tail && piece->tail->newest == one->at) piece->tail->newest = -1;
    if (piece->tail) piece->tail->ended = one->ended;
    keep(pool, piece->from);
    CUevent left = piece->to;
    if (!pool->anchor || one->ended > pool->anchored + 1000000000ULL) {
        left = pool->anchor;
        pool->anchor = piece->to;
        pool->anchor_at = pool->anchored = one->ended;
    }
    keep(pool, left);
    if (piece->serial > flight->completed) flight->completed = piece->serial;
}

/* With the lock held: how many pieces the card runs beside later work, which waits for nothing of them.
 * They are stalled, and so is what follows them in their streams. While there are any, so is work to
 * which the card has not turned in time: it may wait for them by an event. */
static uint32_t find_stalled(int card, uint64_t now) {
    uint32_t overtaken = 0;
    for (int i = 0; i < PIECES; i++) {
        Piece *one = &pieces[i];
        if (!one->flying || one->card != card || one->over) continue;
        one->stalled = one->before < 0 && one->serial < flights[card].completed;
        if (!one->stalled) continue;
        kind_beside(one->kind);
        overtaken++;
    }
    for (int i = 0; i < PIECES && overtaken; i++) {
        Piece *one = &pieces[i];
        int root = i;
        if (!one->flying || one->card != card || one->over) continue;
        while (pieces[root].before >= 0) root = pieces[root].before;
        one->stalled |= pieces[root].stalled || (!pieces[root].begun && now > pieces[root].launched + AHEAD);
    }
    return overtaken;
}

/* With the lock held: what is in flight of a card, and which piece is the oldest. */
static void weigh(int card, uint64_t now) {
    Flight *flight = &flights[card];
    uint64_t expected = 0, count = 0, behind = 0;
    const Piece *oldest = NULL;
    uint32_t unsure = 0, overtaken = find_stalled(card, now);
    for (int i = 0; i < PIECES; i++) {
        const Piece *one = &pieces[i];
        if (!one->flying || one->card != card) continue;
        count++;
        if (one->stalled) behind += one->expected;
        if (one->over || one->stalled) continue;
        expected += one->expected;
        unsure += one->unsure;
        if (!oldest || one->serial < oldest->serial) oldest = one;
    }
    for (int i = 0; i < TAILS; i++)
        if (tails[i].context && tails[i].card == card && tails[i].launches) {
            count++;
            if (tails[i].newest >= 0 && pieces[tails[i].newest].stalled) {
                behind += tails[i].expected;
                continue;
            }
            expected += tails[i].expected;
            unsure += tails[i].unsure;
        }
    flight->expected = expected;
    __atomic_store_n(&flight->count, count, __ATOMIC_RELAXED);
    flight->unsure = unsure;
    flight->overtaken = overtaken;
    flight->stalled = behind;
    if (!overtaken || !flight->stalled_since) flight->stalled_since = overtaken ? now : 0;
    flight->begun = oldest && oldest->begun;
    if ((oldest ? oldest->serial : 0) != flight->oldest) flight_oldest(flight, oldest, now);
    ShareSlot *slot = my_slot();
    if (slot && !count) __atomic_store_n(&slot->flying[card], 0, __ATOMIC_RELAXED);
}

/* Launches without an event of their own count as complete when they should be. */
static uint64_t tails_over(int card, uint64_t now, uint64_t *first) {
    uint64_t sum = 0;
    for (int i = 0; i < TAILS; i++) {
        Tail *one = &tails[i];
        /* What begins with an event is told when it ends with one. */
        if (!one->context || one->card != card || !one->launches || one->newest >= 0 || (one->from && one->inside)) continue;
        uint64_t from = one->ended > one->launched ? one->ended : one->launched, to = from + one->expected;
        uint64_t until = one->inside || to > now ? now : to;
        if (!one->from || to + MARK <= now) {
            sum += timeline_add(card, (Span){from, until});
            if (from < *first) *first = from;
        }
        if (one->inside || to + MARK > now) continue;
        Pool *pool = NULL;
        for (int k = 0; k < POOLS && one->from; k++)
            if (pools[k].context == one->context) pool = &pools[k];
        keep(pool, one->from);
        one->from = NULL;
        one->launches = one->of_kind = 0;
        one->expected = one->others = one->peak = 0;
        one->unsure = false;
        one->ended = to;
    }
    return sum;
}

/* With the lock held. */
static void tell(int card, const Seen *seen, int count, uint64_t now) {
    uint64_t sum = 0, first = now, last = now;
    for (int i = 0; i < count; i++) {
        const Piece *piece = &pieces[seen[i].at];
        if (piece->card != card || !piece->begun || seen[i].lost) continue;
        uint64_t to = seen[i].done ? seen[i].ended : piece->over ? piece->over : now;
        sum += timeline_add(card, (Span){piece->begun, to});
        if (piece->begun < first) first = piece->begun;
        if (to > last) last = to;
    }
    sum += tails_over(card, now, &first);
    if (sum) charge(card, sum, last - first < sum ? last - sum : first, last);
}

/* --- a look --- */

static int by_serial(const void *a, const void *b) {
    const Seen *one = a, *other = b;
    return one->piece.serial < other->piece.serial ? -1 : one->piece.serial > other->piece.serial;
}

/* Look at all in flight; true while there is any. */
static bool look(void) {
    static Seen seen[PIECES];
    int count = 0;
    bool flying = false, progress = false;
    pthread_mutex_lock(&meter_watching);
    uint64_t now = clock_now();
    pthread_mutex_lock(&meter_lock);
    for (int i = 0; i < PIECES; i++)
        if (pieces[i].flying) seen[count++] = (Seen){.at = i, .piece = pieces[i]};
    pthread_mutex_unlock(&meter_lock);
    qsort(seen, (size_t)count, sizeof *seen, by_serial);
    ask_all(seen, count);
    pthread_mutex_lock(&meter_lock);
    for (int i = 0; i < count; i++) {
        Piece *piece = &pieces[seen[i].at];
        piece->open = seen[i].piece.open;
        if (!piece->begun && seen[i].from_done) piece->begun = seen[i].begun;
        if (seen[i].done) complete(&seen[i]);
        progress |= seen[i].done || seen[i].lost;
    }
    for (int card = 0; card < (int)granted->cards; card++) tell(card, seen, count, now);
    for (int i = 0; i < count; i++) {
        Piece *piece = &pieces[seen[i].at];
        if (!seen[i].done && !seen[i].lost) continue;
        piece->flying = false;
        if (piece->tail && piece->tail->newest == seen[i].at) piece->tail->newest = -1;
        for (int k = 0; k < PIECES && seen[i].lost; k++)
            if (pieces[k].flying && pieces[k].before == seen[i].at) pieces[k].before = -1;
    }
    for (int card = 0; card < (int)granted->cards; card++) {
        weigh(card, now);
        flying |= flights[card].count != 0;
    }
    if (progress) __atomic_add_fetch(&meter_word, 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&meter_lock);
    pthread_mutex_unlock(&meter_watching);
    if (progress) clock_wake(&meter_word, meter_name());
    return flying;
}

void watch_look(void) {
    pthread_mutex_lock(&meter_lock);
    for (int card = 0; card < (int)granted->cards; card++) weigh(card, clock_now());
    __atomic_add_fetch(&meter_word, 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&meter_lock);
    clock_wake(&meter_word, meter_name());
}

/* --- the thread --- */

static void *watch(void *unused) {
    int mode = RELAXED;
    (void)unused;
    clock_join();
    __atomic_store_n(&started, 2, __ATOMIC_RELEASE);
    /* What this thread asks must not end a capture of another. */
    REAL(cuThreadExchangeStreamCaptureMode)(&mode);
    while (!__atomic_load_n(&stopping, __ATOMIC_ACQUIRE)) {
        uint32_t heard = __atomic_load_n(&kick, __ATOMIC_ACQUIRE);
        if (look()) {
            uint64_t now = clock_now();
            clock_wait(&stopping, 0, now + FAR, 0);
            continue;
        }
        __atomic_store_n(&asleep, true, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&kick, __ATOMIC_SEQ_CST) == heard) clock_wait(&kick, heard, 0, kick_name());
        __atomic_store_n(&asleep, false, __ATOMIC_SEQ_CST);
    }
    clock_leave();
    __atomic_store_n(&ended, 1, __ATOMIC_RELEASE);
    return NULL;
}

void watch_kick(void) {
    __atomic_add_fetch(&kick, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&asleep, __ATOMIC_SEQ_CST)) clock_wake(&kick, kick_name());
}

/* Before the driver's own end, which is registered earlier. */
static void stop(void) {
    if (!__atomic_load_n(&started, __ATOMIC_ACQUIRE)) return;
    __atomic_store_n(&stopping, 1, __ATOMIC_RELEASE);
    clock_wake(&kick, kick_name());
    clock_wake(&stopping, 0);
    for (int tries = 0; tries < 100 && !__atomic_load_n(&ended, __ATOMIC_ACQUIRE); tries++) usleep(1000);
}

static void before_fork(void) {
    pthread_mutex_lock(&meter_watching);
    pthread_mutex_lock(&meter_lock);
}
static void in_parent(void) {
    pthread_mutex_unlock(&meter_lock);
    pthread_mutex_unlock(&meter_watching);
}
/* A child has no watcher, and nothing in flight. */
static void in_child(void) {
    pthread_mutex_init(&meter_lock, NULL);
    pthread_mutex_init(&meter_watching, NULL);
    memset(flights, 0, sizeof flights);
    memset(pieces, 0, sizeof pieces);
    memset(tails, 0, sizeof tails);
    memset(pools, 0, sizeof pools);
    timeline_clear();
    started = 0;
    asleep = false;
}

void watch_start(void) {
    uint32_t no = 0;
    if (__atomic_load_n(&started, __ATOMIC_ACQUIRE)) return;
    if (!__atomic_compare_exchange_n(&started, &no, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return;
    static bool once;
    if (!once) {
        once = true;
        pthread_atfork(before_fork, in_parent, in_child);
        atexit(stop);
    }
    sigset_t all, old;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    bool well = !pthread_create(&thread, NULL, watch, NULL);
    if (well) pthread_detach(thread);
    else __atomic_store_n(&started, 0, __ATOMIC_RELEASE);
    while (well && __atomic_load_n(&started, __ATOMIC_ACQUIRE) < 2) sched_yield();
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}
