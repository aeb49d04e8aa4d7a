/* The gate's questions about work in flight: whether more fits, and whether what runs may wait for it. */
#include "meter.h"

/* New work in a stream of its own is not held back for what is new elsewhere: once for each kind. */
static bool is_new(const Pass *pass, CUstream stream, bool per_thread) {
    pthread_mutex_lock(&meter_lock);
    const Tail *tail = kind_guess(pass->kind).known ? NULL : tail_of(pass->context, stream, per_thread, pass->card);
    bool found = tail && quiet(tail) && flights[pass->card].unsure < MOST_UNSURE;
    pthread_mutex_unlock(&meter_lock);
    return found;
}

/* Longer than it should: how long yet is not known. */
static bool is_overdue(const Flight *flight, uint64_t now) {
    return flight->oldest && now > flight->since + flight->oldest_expected + AHEAD;
}

uint64_t meter_room(const Pass *pass, CUstream stream, bool per_thread, uint64_t now, uint64_t until) {
    const Flight *flight = &flights[pass->card];
    if (!__atomic_load_n(&flight->count, __ATOMIC_RELAXED)) return now;
    uint64_t expected = __atomic_load_n(&flight->expected, __ATOMIC_RELAXED);
    uint64_t ran = flight->oldest && now > flight->since ? now - flight->since : 0;
    if (is_overdue(flight, now) || flight->unsure) return is_new(pass, stream, per_thread) ? now : now + AHEAD;
    if (ran > flight->oldest_expected) ran = flight->oldest_expected;
    uint64_t rest = expected > ran ? expected - ran : 0;
    /* The card works for others still, as it did the last two times: what begins later is theirs, too. */
    uint64_t late = flight->late < flight->later ? flight->late : flight->later, left = until - now;
    if (late <= MARK || flight->begun) late = 0;
    if (left <= late || rest >= left - late) return until;
    return rest < AHEAD ? now : now + rest - AHEAD + MARK;
}

/* --- work that runs may wait for work that the gate holds back --- */

enum { PERIOD = 20000000, LEAST = 5, UNKNOWN = PERIOD / 8 };

/* Later work was complete before it: the card runs both, and more may follow within what the share is
 * granted in any case. Of what waits in the same stream, a period's worth and the share's part of the time. */
static bool beside(const Flight *flight, const Tail *tail, uint64_t cost, uint64_t part, uint64_t now, uint64_t *next) {
    bool behind = tail && tail->newest >= 0 && pieces[tail->newest].stalled;
    if (!behind && flight->expected >= AHEAD) return false;
    uint64_t most = PERIOD + (now - flight->stalled_since) / 100 * part;
    if (behind && flight->stalled + cost > most) {
        *next = now + MARK + (flight->stalled + cost - most) / part * 100;
        return false;
    }
    *next = now - now % PERIOD + PERIOD;
    return now % PERIOD < PERIOD / 100 * part;
}

/* The oldest is overdue. One launch in a stream of its own tells whether the card runs both. Others pass as a
 * debt, of no more than the share's part of the time for which the oldest has run. What is of its kind may
 * take as long as it. */
static bool overdue(Flight *flight, const Tail *tail, uint64_t kind, uint64_t part, uint64_t now, uint64_t *next) {
    Guess guess = kind_guess(kind);
    uint64_t cost = guess.known ? guess.peak : UNKNOWN, ran = now - flight->since;
    if (guess.wild || !is_overdue(flight, now)) return false;
    if (kind == flight->oldest_kind && ran > cost) cost = ran;
    if (tail && quiet(tail) && cost <= AHEAD && flight->probed != flight->oldest) {
        flight->probed = flight->oldest;
        return true;
    }
    if (!flight->begun || flight->unsure >= MOST_UNSURE) return false;
    uint64_t most = AHEAD + ran / 100 * part;
    if (flight->debt + cost <= most) {
        flight->debt += cost;
        return true;
    }
    *next = now + MARK + (flight->debt + cost - most) / part * 100;
    return false;
}

/* Else one passes when the oldest has run for twice as long as anything before it, then more rarely. */
static bool patient(Flight *flight, uint64_t now, uint64_t *next) {
    if (!flight->oldest) return false;
    if (now < flight->next_pass) {
        if (flight->next_pass < *next) *next = flight->next_pass;
        return false;
    }
    flight->patience = flight->patience * 2 > LONGEST_PATIENCE ? LONGEST_PATIENCE : flight->patience * 2;
    flight->next_pass = now + flight->patience;
    return true;
}

bool meter_dependent(const Pass *pass, CUstream stream, bool per_thread, bool leased, uint64_t now, uint64_t *look_again) {
    pthread_mutex_lock(&meter_lock);
    Flight *flight = &flights[pass->card];
    uint64_t part = granted->card[pass->card].compute, next = *look_again;
    if (part < LEAST) part = LEAST;
    const Tail *tail = tail_of(pass->context, stream, per_thread, pass->card);
    /* Outside of its windows only what runs for longer than it would wait for another share. */
    bool late = flight->begun && now > flight->since + flight->oldest_expected + PERIOD, told = false;
    bool known = (leased || late) && overdue(flight, tail, pass->kind, part, now, &next);
    if (!known) told = (flight->overtaken && beside(flight, tail, kind_guess(pass->kind).cost, part, now, &next)) || patient(flight, now, &next);
    if (next < *look_again) *look_again = next;
    pthread_mutex_unlock(&meter_lock);
    /* What passes as a debt is bounded and paid; the rest is told. */
    if (told) __atomic_add_fetch(&account->card[pass->card].passed, 1, __ATOMIC_RELAXED);
    return known || told;
}
