/* A share of cards in two files that a container maps: what the node's agent granted, which the
 * container can only read, and its account, which it writes. `devices/sharing/region.py` says the
 * same in Python; a test compares the two.
 *
 * The agent never maps the account: it reads it with pread, so that a file cut short is a short
 * read, and checks each value. A pipe beside them wakes the agent. Times are nanoseconds of
 * CLOCK_MONOTONIC. */
#pragma once
#include "../common/shared.h"

enum { SHARE_MAGIC = 0x4c535348, SHARE_VERSION = 2, SHARE_CARDS = 16, SHARE_SLOTS = 1024 };
enum { LEASE_OPEN = 1, LEASE_PAUSED = 2 };

/* From `from` on, in each `period`, the share may use the card for `length` from `offset` on.
 * It holds until `until` at the longest: later the agent no longer renews it. `beside` are the
 * bytes that its processes hold beside what they allocated: their contexts. */
typedef struct { uint64_t from, period, offset, length, until, flags, epoch, beside; } Lease;

typedef struct {
    char uuid[48];
    uint64_t limit;      /* bytes; 0: no limit */
    uint32_t compute;    /* hundredths; 0: no limit */
    uint32_t sequence;   /* of leases: leases[sequence & 1] is the newest */
    Lease leases[2];
} GrantedCard;

/* Written by the agent alone. */
typedef struct { uint32_t magic, version, cards, wake; GrantedCard card[SHARE_CARDS]; } Granted;

typedef struct {
    uint64_t busy;       /* measured time of the card */
    uint64_t covered;    /* until when the container's time is accounted for */
    uint64_t throttled;  /* waited at the gate */
    uint64_t launches;
    uint64_t refused;    /* allocations beyond the limit */
    uint64_t unheld;     /* launches whose completion could not be measured */
    uint64_t passed;     /* launches let through because running work may depend on them */
    uint64_t longest;    /* nanoseconds of the longest piece of work seen */
} AccountCard;

/* A process of the container. It lives while it holds a lock on its slot's first byte: the kernel
 * gives that back when the process ends, in every PID namespace, whichever thread ended last. */
typedef struct {
    int32_t pid;                      /* in the container's own PID namespace; 0: the slot is free */
    uint32_t waiting[SHARE_CARDS];    /* threads at the gate */
    uint32_t unused;
    uint64_t flying[SHARE_CARDS];     /* since when it has work on the card; 0: none */
    uint64_t used[SHARE_CARDS];       /* bytes */
} ShareSlot;

typedef struct {
    uint32_t magic, version;
    SharedLock lock;
    uint64_t unknown;    /* looked up calls that the front does not know */
    uint64_t fallback;   /* times at which leases were found to be old */
    char stranger[64];   /* the last unknown call's name */
    uint32_t slots, unused;
    AccountCard card[SHARE_CARDS];
    ShareSlot slot[SHARE_SLOTS];
} Account;

/* The three files are beside each other: ONE.share, ONE.account, ONE.bell. */
static inline bool share_sibling(const char *share, const char *kind, char *out, size_t size) {
    const char *dot = strrchr(share, '.');
    if (!dot || strcmp(dot, ".share")) return false;
    return (size_t)snprintf(out, size, "%.*s.%s", (int)(dot - share), share, kind) < size;
}

static inline const Granted *share_granted(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat about;
    void *at = MAP_FAILED;
    if (fd >= 0 && !fstat(fd, &about) && about.st_size >= (off_t)sizeof(Granted))
        at = mmap(NULL, sizeof(Granted), PROT_READ, MAP_SHARED, fd, 0);
    if (fd >= 0) close(fd);
    if (at == MAP_FAILED) return NULL;
    const Granted *found = at;
    return found->magic == SHARE_MAGIC && found->version == SHARE_VERSION && found->cards <= SHARE_CARDS ? found : NULL;
}

static inline Account *share_account(const char *path, int *fd) {
    Account *found = shared_map(path, sizeof(Account), offsetof(Account, lock), false, fd);
    return found && found->magic == SHARE_MAGIC && found->version == SHARE_VERSION ? found : NULL;
}

static inline off_t slot_life(uint32_t i) { return (off_t)(offsetof(Account, slot) + i * sizeof(ShareSlot)); }
static inline bool slot_lives(int fd, uint32_t i) { return life_holder(fd, slot_life(i)) >= 0; }

/* What all processes hold of a card, with what they hold beside their allocations. */
static inline uint64_t share_held(const Granted *granted, const Account *account, int card) {
    const GrantedCard *from = &granted->card[card];
    uint64_t sum = from->leases[__atomic_load_n(&from->sequence, __ATOMIC_ACQUIRE) & 1].beside;
    uint32_t slots = account->slots < SHARE_SLOTS ? account->slots : SHARE_SLOTS;
    for (uint32_t i = 0; i < slots; i++) sum += account->slot[i].pid ? account->slot[i].used[card] : 0;
    return sum;
}
