/* NVML as a container with a share sees it: its share as the card's memory, and no processes but
 * its own. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

#include "share.h"

typedef int Result;
typedef struct Device Device;
typedef unsigned long long ull;
typedef struct { ull total, free, used; } Memory;
typedef struct { unsigned version; ull total, reserved, free, used; } MemoryV2;
typedef struct { unsigned pid; ull memory; } ProcessV1;
typedef struct { unsigned pid; ull memory; unsigned instance, compute; } Process;

enum { INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, FUNCTION_NOT_FOUND = 13 };
static const unsigned NO_INSTANCE = 0xFFFFFFFF;
static Result lacking(void) { return FUNCTION_NOT_FOUND; }

#define OWN(name) static void *real_##name = (void *)lacking;
#define PASS(name) __attribute__((visibility("hidden"))) void *real_##name = (void *)lacking;
#include "nvml.def"
#undef OWN
#undef PASS

static const Granted *granted;
static Account *account;
static int account_file = -1;

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("LOCKSTEP_NVML"), *file = getenv("LOCKSTEP_SHARE");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL, *found;
    char beside[4096];
    if (!library) {
        fprintf(stderr, "lockstep: NVML cannot be loaded: %s\n", path ? dlerror() : "LOCKSTEP_NVML does not name it");
        return;
    }
#define OWN(name) if ((found = dlsym(library, #name))) real_##name = found;
#define PASS(name) OWN(name)
#include "nvml.def"
#undef OWN
#undef PASS
    if (!file || !share_sibling(file, "account", beside, sizeof beside)) return;
    granted = share_granted(file);
    account = granted ? share_account(beside, &account_file) : NULL;
    if (!account) granted = NULL;
}

static int card_of(Device *device) {
    char uuid[96];
    Result (*ask)(Device *, char *, unsigned) = (Result (*)(Device *, char *, unsigned))real_nvmlDeviceGetUUID;
    if (!granted || ask(device, uuid, sizeof uuid)) return -1;
    for (uint32_t i = 0; i < granted->cards && i < SHARE_CARDS; i++)
        if (!strncmp(granted->card[i].uuid, uuid, sizeof granted->card[i].uuid)) return (int)i;
    return -1;
}

/* --- the share's cards, in its order, and no others --- */

#define COUNTS(name)                                              \
    Result name(unsigned *out) {                                  \
        Result result = ((Result (*)(unsigned *))real_##name)(out); \
        if (granted && !result) *out = granted->cards;            \
        return result;                                            \
    }
COUNTS(nvmlDeviceGetCount)
COUNTS(nvmlDeviceGetCount_v2)

Result nvmlDeviceGetHandleByIndex_v2(unsigned index, Device **out) {
    char uuid[sizeof granted->card[0].uuid + 1] = "";
    if (!granted) return ((Result (*)(unsigned, Device **))real_nvmlDeviceGetHandleByIndex_v2)(index, out);
    if (index >= granted->cards) return INVALID_ARGUMENT;
    memcpy(uuid, granted->card[index].uuid, sizeof uuid - 1);
    return ((Result (*)(const char *, Device **))real_nvmlDeviceGetHandleByUUID)(uuid, out);
}
Result nvmlDeviceGetHandleByIndex(unsigned index, Device **out) {
    if (granted) return nvmlDeviceGetHandleByIndex_v2(index, out);
    return ((Result (*)(unsigned, Device **))real_nvmlDeviceGetHandleByIndex)(index, out);
}

#define FINDS(name)                                                                    \
    Result name(const void *what, Device **out) {                                      \
        Result result = ((Result (*)(const void *, Device **))real_##name)(what, out); \
        return granted && !result && card_of(*out) < 0 ? NOT_FOUND : result;           \
    }
FINDS(nvmlDeviceGetHandleByPciBusId_v2)
FINDS(nvmlDeviceGetHandleBySerial)
FINDS(nvmlDeviceGetHandleByUUID)
FINDS(nvmlDeviceGetHandleByUUIDV)

Result nvmlDeviceGetIndex(Device *device, unsigned *out) {
    Result result = ((Result (*)(Device *, unsigned *))real_nvmlDeviceGetIndex)(device, out);
    int card = result ? -1 : card_of(device);
    if (card >= 0) *out = (unsigned)card;
    return result;
}

/* --- memory --- */

/* What all processes of the container hold; the dead are left out. */
static uint64_t used(int card) {
    const GrantedCard *from = &granted->card[card];
    uint64_t sum = from->leases[from->sequence & 1].beside;
    uint32_t slots = account->slots < SHARE_SLOTS ? account->slots : SHARE_SLOTS;
    for (uint32_t i = 0; i < slots; i++) {
        const ShareSlot *one = &account->slot[i];
        if (one->pid && one->used[card] && slot_lives(account_file, i)) sum += one->used[card];
    }
    return sum;
}

Result nvmlDeviceGetMemoryInfo(Device *device, Memory *out) {
    Result result = ((Result (*)(Device *, Memory *))real_nvmlDeviceGetMemoryInfo)(device, out);
    int card = result ? -1 : card_of(device);
    uint64_t limit = card < 0 ? 0 : granted->card[card].limit;
    if (!limit) return result;
    out->total = limit;
    out->used = used(card);
    out->free = out->used < limit ? limit - out->used : 0;
    return result;
}

Result nvmlDeviceGetMemoryInfo_v2(Device *device, MemoryV2 *out) {
    Result result = ((Result (*)(Device *, MemoryV2 *))real_nvmlDeviceGetMemoryInfo_v2)(device, out);
    int card = result ? -1 : card_of(device);
    uint64_t limit = card < 0 ? 0 : granted->card[card].limit;
    if (!limit) return result;
    out->total = limit;
    out->reserved = 0;
    out->used = used(card);
    out->free = out->used < limit ? limit - out->used : 0;
    return result;
}

/* --- processes --- */

/* The container's processes on a card, by their numbers in the container; the count is what there
 * are, also beyond *most*. */
static unsigned running(int card, Process *out, unsigned most) {
    unsigned found = 0;
    uint32_t slots = account->slots < SHARE_SLOTS ? account->slots : SHARE_SLOTS;
    for (uint32_t i = 0; i < slots; i++) {
        const ShareSlot *one = &account->slot[i];
        if (!one->pid || !(one->used[card] || one->flying[card]) || !slot_lives(account_file, i)) continue;
        if (found < most) out[found] = (Process){(unsigned)one->pid, one->used[card], NO_INSTANCE, NO_INSTANCE};
        found++;
    }
    return found;
}

static Result listed(int card, unsigned *count, void *out, size_t size) {
    Process found[SHARE_SLOTS];
    unsigned there = running(card, found, SHARE_SLOTS), room = *count;
    *count = there;
    if (there > room) return INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < there && out; i++) {
        ProcessV1 first = {found[i].pid, found[i].memory};
        memcpy((char *)out + i * size, size == sizeof first ? (void *)&first : (void *)&found[i], size);
    }
    return 0;
}

#define LISTS(name, type)                                                                      \
    Result name(Device *device, unsigned *count, type *out) {                                  \
        int card = card_of(device);                                                            \
        if (card >= 0) return listed(card, count, out, sizeof(type));                          \
        return ((Result (*)(Device *, unsigned *, type *))real_##name)(device, count, out);    \
    }
LISTS(nvmlDeviceGetComputeRunningProcesses, ProcessV1)
LISTS(nvmlDeviceGetComputeRunningProcesses_v2, Process)
LISTS(nvmlDeviceGetComputeRunningProcesses_v3, Process)

/* Graphics and MPS clients are not held by the front, and no container's own. */
#define EMPTY(name, type)                                                                      \
    Result name(Device *device, unsigned *count, type *out) {                                  \
        if (card_of(device) < 0)                                                               \
            return ((Result (*)(Device *, unsigned *, type *))real_##name)(device, count, out); \
        *count = 0;                                                                            \
        return 0;                                                                              \
    }
EMPTY(nvmlDeviceGetGraphicsRunningProcesses, ProcessV1)
EMPTY(nvmlDeviceGetGraphicsRunningProcesses_v2, Process)
EMPTY(nvmlDeviceGetGraphicsRunningProcesses_v3, Process)
EMPTY(nvmlDeviceGetMPSComputeRunningProcesses, ProcessV1)
EMPTY(nvmlDeviceGetMPSComputeRunningProcesses_v2, Process)
EMPTY(nvmlDeviceGetMPSComputeRunningProcesses_v3, Process)

/* What other containers' processes do is not told. */
#define HIDDEN(name, parameters, arguments, answer)                          \
    Result name parameters {                                                 \
        if (card_of(device) >= 0) return answer;                             \
        return ((Result(*) parameters)real_##name) arguments;                \
    }
HIDDEN(nvmlDeviceGetProcessUtilization, (Device *device, void *out, unsigned *count, ull since), (device, out, count, since),
       (*count = 0, NOT_FOUND))
HIDDEN(nvmlDeviceGetEncoderSessions, (Device *device, unsigned *count, void *out), (device, count, out), (*count = 0, 0))
HIDDEN(nvmlDeviceGetFBCSessions, (Device *device, unsigned *count, void *out), (device, count, out), (*count = 0, 0))
HIDDEN(nvmlDeviceGetProcessesUtilizationInfo, (Device *device, void *out), (device, out), NOT_SUPPORTED)
HIDDEN(nvmlDeviceGetRunningProcessDetailList, (Device *device, void *out), (device, out), NOT_SUPPORTED)
HIDDEN(nvmlDeviceGetAccountingPids, (Device *device, unsigned *count, unsigned *out), (device, count, out), NOT_SUPPORTED)
HIDDEN(nvmlDeviceGetAccountingStats, (Device *device, unsigned pid, void *out), (device, pid, out), NOT_SUPPORTED)
HIDDEN(nvmlDeviceGetAccountingStats_v2, (Device *device, unsigned pid, void *out), (device, pid, out), NOT_SUPPORTED)
