/* A share of cards: what a container may have of each, as a file that its processes and the node's
 * agent map. `devices/sharing/region.py` says the same in Python; a test compares the two.
 *
 * The container can write all of it. The agent believes none of it, keeps what it granted
 * elsewhere, and uses what is said here only to count. Times are nanoseconds of CLOCK_MONOTONIC. */
#pragma once
#include "../common/shared.h"

enum { SHARE_MAGIC = 0x4c535348, SHARE_VERSION = 1, SHARE_CARDS = 16, SHARE_SLOTS = 1024 };
enum { LEASE_OPEN = 1, LEASE_PAUSED = 2 };

/* From `from` on, in each `period`, the share may use the card for `length` from `offset` on.
 * It holds until `until` at the longest: later nobody has renewed it. `beside` are the bytes that
 * its processes hold beside what they allocated: their contexts. */
typedef struct { uint64_t from, period, offset, length, until, flags, epoch, beside; } Lease;

static inline uint64_t share_beside(const Lease *leases, uint32_t sequence) { return leases[sequence & 1].beside; }

typedef struct {
    char uuid[48];
    uint64_t limit;      /* bytes; 0: no limit */
    uint32_t compute;    /* hundredths; 0: no limit */
    uint32_t sequence;   /* of leases: leases[sequence & 1] is the newest */
    Lease leases[2];
    /* What its processes say. */
    uint64_t busy;       /* metered time of the card */
    uint64_t tail;       /* when what was launched will have run */
    uint64_t throttled;  /* waited at the gate */
    uint64_t overrun;    /* used beyond the ends of leases */
    uint64_t launches;
    uint64_t refused;    /* allocations beyond the limit */
    uint32_t waiting;    /* threads at the gate */
    uint32_t longest;    /* microseconds of the longest kernel known */
} ShareCard;

/* A process of the container; one that is gone is known by when it began. */
typedef struct { int32_t pid; uint32_t unused; uint64_t start, used[SHARE_CARDS]; } ShareSlot;

typedef struct {
    uint32_t magic, version, cards, wake;
    SharedLock lock;
    uint64_t unknown;    /* looked up calls that the front does not know */
    uint64_t fallback;   /* times at which leases were found to be old */
    uint32_t slots, unused;
    ShareCard card[SHARE_CARDS];
    ShareSlot slot[SHARE_SLOTS];
} Share;
