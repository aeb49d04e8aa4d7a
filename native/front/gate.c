/* The gate before work: a launch waits for the share's lease.
 *
 * It asks the driver about nothing, and waits for nothing that may depend on a later launch: while
 * earlier work is in flight, some launches pass in any case, as a debt that is paid later. */
#include "front.h"

static const uint64_t SECOND = 1000000000ULL, PERIOD = 20000000ULL, IDLE = 100000000ULL;
static int captures;

void capture_began(void) { __atomic_add_fetch(&captures, 1, __ATOMIC_RELAXED); }
void capture_ended(void) {
    int before = __atomic_load_n(&captures, __ATOMIC_RELAXED);
    while (before > 0 && !__atomic_compare_exchange_n(&captures, &before, before - 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

/* Whether what is launched now becomes part of a graph; also where the driver cannot say it. */
bool capturing(CUstream stream, bool per_thread) {
    int state = 0;
    if (!__atomic_load_n(&captures, __ATOMIC_RELAXED)) return false;
    CUresult result = per_thread ? REAL(cuStreamIsCapturing_ptsz)(stream, &state) : REAL(cuStreamIsCapturing)(stream, &state);
    return result || state;
}

/* --- leases --- */

static Lease lease_at(const GrantedCard *card, uint64_t now) {
    for (;;) {
        uint32_t before = __atomic_load_n(&card->sequence, __ATOMIC_ACQUIRE);
        Lease found = card->leases[before & 1];
        if (found.from > now && card->leases[~before & 1].until) found = card->leases[~before & 1];
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (__atomic_load_n(&card->sequence, __ATOMIC_RELAXED) == before) return found;
    }
}

/* The agent no longer renews the lease: its own part of each period, in step with no other share. */
static Lease alone(const GrantedCard *card) {
    static bool told;
    if (!told) {
        told = true;
        __atomic_add_fetch(&account->fallback, 1, __ATOMIC_RELAXED);
        if (card->compute)
            fprintf(stderr, "lockstep: the node's agent grants no leases; %u %% of each 20 ms are used, out of step "
                            "with other shares\n", card->compute);
        else
            fprintf(stderr, "lockstep: the node's agent grants no leases; the GPU's time is used without limit\n");
    }
    if (!card->compute) return (Lease){.flags = LEASE_OPEN, .until = UINT64_MAX};
    return (Lease){.period = PERIOD, .length = PERIOD / 100 * card->compute, .until = UINT64_MAX};
}

/* Without an agent a share pays its debts itself. */
static bool owes(int card, const Lease *lease, uint64_t now) {
    static uint64_t since[SHARE_CARDS], busy[SHARE_CARDS];
    uint64_t used = __atomic_load_n(&account->card[card].busy, __ATOMIC_RELAXED);
    if (!since[card] || now > since[card] + SECOND) {
        uint64_t over = since[card] ? used - busy[card] : 0, part = (now - since[card]) / PERIOD * lease->length;
        busy[card] = used - (since[card] && over > part ? (over - part < SECOND ? over - part : SECOND) : 0);
        since[card] = now;
    }
    return (used - busy[card]) * PERIOD > (now - since[card]) * lease->length + PERIOD * lease->length;
}

/* When work may start by the lease: now, or the moment to look again; `until` is the window's end. */
static uint64_t may_start(int number, uint64_t now, bool *open, uint64_t *until) {
    const GrantedCard *card = &granted->card[number];
    Lease lease = lease_at(card, now);
    *until = UINT64_MAX;
    *open = lease.flags & LEASE_OPEN && lease.until > now;
    if (*open) return now;
    if (lease.until <= now) {
        /* The agent gets as long for the first lease as for the next. */
        static uint64_t first;
        if (!first) first = now;
        if (!lease.until && now < first + 2 * SECOND) return first + 2 * SECOND;
        lease = alone(card);
        *open = lease.flags & LEASE_OPEN;
        if (*open) return now;
        if (owes(number, &lease, now)) return now + PERIOD / 4;
    }
    if (!lease.period || !lease.length || lease.flags & LEASE_PAUSED) return now + PERIOD;
    if (lease.length >= lease.period) return now;
    uint64_t begun = now - (now - lease.from) % lease.period, start = begun + lease.offset;
    if (now < start) return start;
    *until = start + lease.length;
    return now < *until ? now : start + lease.period;
}

/* When the newest lease begins, if that is still to come. */
static uint64_t next_lease(const GrantedCard *card, uint64_t now) {
    uint64_t from = card->leases[__atomic_load_n(&card->sequence, __ATOMIC_ACQUIRE) & 1].from;
    return from > now ? from : UINT64_MAX;
}

/* --- the wait --- */

static void begin_waiting(int number, ShareSlot *slot, bool fresh, uint64_t now) {
    /* Its time may be lent to others, who have to give it back. */
    bool first = slot && !__atomic_fetch_add(&slot->waiting[number], 1, __ATOMIC_RELAXED);
    if (first && (fresh || !lease_at(&granted->card[number], now).length)) ring();
}

/* Whether the share began to use the card again, after a pause. */
static bool is_fresh(int number, const ShareSlot *slot) {
    return slot && !__atomic_load_n(&slot->flying[number], __ATOMIC_RELAXED) &&
           __atomic_load_n(&account->card[number].covered, __ATOMIC_RELAXED) + IDLE < clock_now();
}

static uint64_t wait_at_gate(const Pass *pass, ShareSlot *slot, bool fresh, CUstream stream, bool per_thread) {
    int number = pass->card;
    const GrantedCard *card = &granted->card[number];
    AccountCard *told = &account->card[number];
    uint64_t began_at = 0;
    for (;;) {
        uint32_t lease_word = __atomic_load_n(&granted->wake, __ATOMIC_ACQUIRE);
        uint32_t work_word = __atomic_load_n(&meter_word, __ATOMIC_ACQUIRE);
        bool open;
        uint64_t now = clock_now(), until, when = may_start(number, now, &open, &until);
        bool by_lease = when > now;
        if (!by_lease && !open) when = meter_room(pass, stream, per_thread, now, until);
        if (when <= now || meter_dependent(pass, stream, per_thread, !by_lease, now, &when)) {
            if (began_at) {
                if (slot) __atomic_sub_fetch(&slot->waiting[number], 1, __ATOMIC_RELAXED);
                __atomic_add_fetch(&told->throttled, now - began_at, __ATOMIC_RELAXED);
            }
            return now;
        }
        if (!began_at) {
            began_at = now;
            begin_waiting(number, slot, fresh, now);
        }
        if (by_lease) {
            uint64_t next = next_lease(card, now);
            clock_wait(&granted->wake, lease_word, when < next ? when : next, share_name);
        } else {
            clock_wait(&meter_word, work_word, when, meter_name());
        }
    }
}

Pass gate_enter(uint64_t kind, CUstream stream, bool per_thread, Waits waits) {
    Pass pass = {.card = share_of_context(), .waits = waits, .kind = kind};
    if (pass.card < 0 || capturing(stream, per_thread)) return (Pass){.card = -1};
    ShareSlot *slot = my_slot();
    pass.context = context_now();
    bool fresh = is_fresh(pass.card, slot);
    pass.at = wait_at_gate(&pass, slot, fresh, stream, per_thread);
    if (slot && !__atomic_load_n(&slot->flying[pass.card], __ATOMIC_RELAXED))
        __atomic_store_n(&slot->flying[pass.card], pass.at, __ATOMIC_RELAXED);
    __atomic_add_fetch(&account->card[pass.card].launches, 1, __ATOMIC_RELAXED);
    /* The agent hears it when what it looks at has changed. */
    if (fresh) ring();
    meter_began(&pass, stream, per_thread);
    return pass;
}

void gate_leave(Pass pass, CUstream stream, bool per_thread, CUresult result) {
    if (pass.card >= 0) meter_launched(&pass, stream, per_thread, !result);
}
