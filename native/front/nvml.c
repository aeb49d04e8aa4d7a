/* NVML as a container with a share sees it: the memory of its cards is that of its share. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

#include "share.h"

typedef int Result;
typedef struct Device Device;
typedef unsigned long long ull;
typedef struct { ull total, free, used; } Memory;
typedef struct { unsigned version; ull total, reserved, free, used; } MemoryV2;

enum { NOT_SUPPORTED = 3, FUNCTION_NOT_FOUND = 13 };
static Result lacking(void) { return FUNCTION_NOT_FOUND; }

#define OWN(name) static void *real_##name = (void *)lacking;
#define PASS(name) __attribute__((visibility("hidden"))) void *real_##name = (void *)lacking;
#include "nvml.def"
#undef OWN
#undef PASS

static Share *share;

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("LOCKSTEP_NVML"), *file = getenv("LOCKSTEP_SHARE");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL, *found;
    if (!library) {
        fprintf(stderr, "lockstep: NVML cannot be loaded: %s\n", path ? dlerror() : "LOCKSTEP_NVML does not name it");
        return;
    }
#define OWN(name) if ((found = dlsym(library, #name))) real_##name = found;
#define PASS(name) OWN(name)
#include "nvml.def"
#undef OWN
#undef PASS
    if (file) share = shared_map(file, sizeof(Share), offsetof(Share, lock), false);
    if (share && (share->magic != SHARE_MAGIC || share->version != SHARE_VERSION)) share = NULL;
}

static int card_of(Device *device) {
    char uuid[96];
    Result (*ask)(Device *, char *, unsigned) = (Result (*)(Device *, char *, unsigned))real_nvmlDeviceGetUUID;
    if (!share || ask(device, uuid, sizeof uuid)) return -1;
    for (uint32_t i = 0; i < share->cards && i < SHARE_CARDS; i++)
        if (!strncmp(share->card[i].uuid, uuid, sizeof share->card[i].uuid)) return (int)i;
    return -1;
}

/* What all processes of the container hold; the dead are left out. */
static uint64_t used(int card) {
    uint64_t sum = share_beside(share->card[card].leases, share->card[card].sequence);
    uint32_t slots = share->slots < SHARE_SLOTS ? share->slots : SHARE_SLOTS;
    for (uint32_t i = 0; i < slots; i++) {
        const ShareSlot *one = &share->slot[i];
        if (one->pid && one->used[card] && began(one->pid) == one->start) sum += one->used[card];
    }
    return sum;
}

Result nvmlDeviceGetMemoryInfo(Device *device, Memory *out) {
    Result result = ((Result (*)(Device *, Memory *))real_nvmlDeviceGetMemoryInfo)(device, out);
    int card = result ? -1 : card_of(device);
    uint64_t limit = card < 0 ? 0 : share->card[card].limit;
    if (!limit) return result;
    out->total = limit;
    out->used = used(card);
    out->free = out->used < limit ? limit - out->used : 0;
    return result;
}

Result nvmlDeviceGetMemoryInfo_v2(Device *device, MemoryV2 *out) {
    Result result = ((Result (*)(Device *, MemoryV2 *))real_nvmlDeviceGetMemoryInfo_v2)(device, out);
    int card = result ? -1 : card_of(device);
    uint64_t limit = card < 0 ? 0 : share->card[card].limit;
    if (!limit) return result;
    out->total = limit;
    out->reserved = 0;
    out->used = used(card);
    out->free = out->used < limit ? limit - out->used : 0;
    return result;
}
