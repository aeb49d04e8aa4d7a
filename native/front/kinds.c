/* How long launches of one kind take: to bound what is in flight, never to charge it. */
#include "meter.h"

enum { KINDS = 4096, TRIES = 8 };
/* A kind is known once it was measured so often; until then each launch of it is waited for. */
enum { SURE = 8, LONG = 5 * AHEAD };
static struct { uint64_t kind, cost, peak; uint32_t seen; bool beside; } kinds[KINDS];

static size_t place_of(uint64_t kind) {
    size_t start = (kind * 0x9E3779B97F4A7C15ULL) >> 52;
    for (size_t i = 0; i < TRIES; i++) {
        size_t at = (start + i) % KINDS;
        if (kinds[at].kind == kind || !kinds[at].seen) return at;
    }
    /* The table is full here: the first place is learnt anew. */
    kinds[start].seen = 0;
    return start;
}

Guess kind_guess(uint64_t kind) {
    size_t at = place_of(kind);
    uint64_t cost = kinds[at].cost, peak = kinds[at].peak;
    if (!kinds[at].seen) return (Guess){.cost = FIRST_GUESS, .peak = FIRST_GUESS};
    bool wild = peak > LONG && peak > cost + cost / 2;
    return (Guess){cost, peak, true, kinds[at].seen >= SURE && !wild, wild, kinds[at].beside};
}

void kind_learn(uint64_t kind, uint64_t took) {
    size_t at = place_of(kind);
    if (!kinds[at].seen) {
        kinds[at].kind = kind;
        kinds[at].cost = kinds[at].peak = took;
        kinds[at].beside = false;
        kinds[at].seen = 1;
        return;
    }
    if (kinds[at].seen < SURE) kinds[at].seen++;
    kinds[at].cost = took / 4 + kinds[at].cost - kinds[at].cost / 4;
    kinds[at].peak = took > kinds[at].peak ? took : kinds[at].peak - kinds[at].peak / 64;
}

void kind_beside(uint64_t kind) {
    size_t at = place_of(kind);
    if (!kinds[at].seen) kind_learn(kind, FIRST_GUESS);
    kinds[at].beside = true;
}
