/* The share's account: each process has a slot, and takes memory before the driver is asked. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "front.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

/* On a page that is zero in every child, however it was forked. */
static ShareSlot **mine;

__attribute__((constructor)) static void start(void) {
    static ShareSlot *plain;
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mine = page == MAP_FAILED || madvise(page, 4096, MADV_WIPEONFORK) ? &plain : page;
}

/* With the lock held. A slot whose lock can be had is free, or its process is dead. */
static ShareSlot *take_slot(void) {
    for (uint32_t i = 0; i < SHARE_SLOTS; i++) {
        ShareSlot *one = &account->slot[i];
        if (!life_take(account_file, slot_life(i))) continue;
        memset(one, 0, sizeof *one);
        one->pid = getpid();
        if (account->slots < i + 1) account->slots = i + 1;
        return *mine = one;
    }
    return NULL;
}

ShareSlot *my_slot(void) {
    ShareSlot *found = __atomic_load_n(mine, __ATOMIC_ACQUIRE);
    if (found) return found;
    shared_lock(&account->lock);
    found = *mine ? *mine : take_slot();
    shared_unlock(&account->lock);
    return found;
}

/* What the dead held is free again: the driver freed it when they ended. */
static void bury(void) {
    uint32_t slots = account->slots < SHARE_SLOTS ? account->slots : SHARE_SLOTS;
    for (uint32_t i = 0; i < slots; i++) {
        ShareSlot *one = &account->slot[i];
        if (one->pid && one != *mine && !slot_lives(account_file, i)) one->pid = 0;
    }
}

static uint64_t limit_of(int card) { return __atomic_load_n(&granted->card[card].limit, __ATOMIC_RELAXED); }

bool reserve(int card, uint64_t bytes) {
    if (card < 0) return true;
    uint64_t limit = limit_of(card);
    ShareSlot *slot = my_slot();
    shared_lock(&account->lock);
    bool fits = slot && (!limit || (bytes <= limit && share_held(granted, account, card) <= limit - bytes));
    if (slot && !fits) {
        bury();
        fits = bytes <= limit && share_held(granted, account, card) <= limit - bytes;
    }
    if (fits) {
        slot->used[card] += bytes;
        /* The agent looks at what is used after it makes the limit smaller; so one of both sees the other. */
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        uint64_t latest = limit_of(card);
        fits = latest == limit || !latest || share_held(granted, account, card) <= latest;
        if (!fits) slot->used[card] -= bytes;
    }
    if (!fits) account->card[card].refused++;
    shared_unlock(&account->lock);
    return fits;
}

void give_back(int card, uint64_t bytes) {
    if (card < 0) return;
    ShareSlot *slot = my_slot();
    shared_lock(&account->lock);
    if (slot) slot->used[card] -= bytes < slot->used[card] ? bytes : slot->used[card];
    shared_unlock(&account->lock);
}

uint64_t share_used(int card) {
    shared_lock(&account->lock);
    bury();
    uint64_t used = share_held(granted, account, card);
    shared_unlock(&account->lock);
    return used;
}
