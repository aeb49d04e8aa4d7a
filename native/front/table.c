/* The real driver, opened by its path, and a table of all its calls.
 *
 * $LOCKSTEP_DRIVER is its path, $LOCKSTEP_SHARE the share's file. A call that the real driver lacks
 * answers that it is not supported. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/futex.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>

#include "front.h"

static CUresult lacking(void) { return CUDA_ERROR_NOT_SUPPORTED; }

#define OWN(name, ...) void *real_##name = (void *)lacking;
#define PASS(name, ...) __attribute__((visibility("hidden"))) void *real_##name = (void *)lacking;
#define WORK OWN
#define NAMED(...)
#include "calls.def"
#undef OWN
#undef PASS
#undef NAMED

const Granted *granted;
Account *account;
int account_file = -1;
uint64_t share_name;
static int bell = -1;
static const char *trouble;

/* --- the clock: the machine's, or that of a stub whose time is virtual --- */

enum { WORLD_BELL = 0xBE11 };
static uint64_t (*their_now)(void);
static void (*their_wait)(const uint32_t *, uint32_t, uint64_t, uint64_t);
static void (*their_wake)(uint32_t *, uint64_t);
static void (*their_leave)(void), (*their_join)(void);

uint64_t clock_now(void) {
    if (their_now) return their_now();
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}
void clock_wait(const uint32_t *word, uint32_t expected, uint64_t until, uint64_t name) {
    if (their_wait) {
        their_wait(word, expected, until, name);
        return;
    }
    struct timespec t = {(time_t)(until / 1000000000ULL), (long)(until % 1000000000ULL)};
    syscall(SYS_futex, word, FUTEX_WAIT_BITSET, expected, until ? &t : NULL, NULL, FUTEX_BITSET_MATCH_ANY);
}
void clock_wake(uint32_t *word, uint64_t name) {
    if (their_wake) their_wake(word, name);
    else syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
void clock_join(void) {
    if (their_join) their_join();
}
void clock_leave(void) {
    if (their_leave) their_leave();
}

/* The agent had better look at once. A full pipe has rung already. */
void ring(void) {
    if (bell >= 0 && write(bell, "", 1) < 0) {
    }
    if (their_wake) their_wake(NULL, WORLD_BELL);
}

/* --- the share --- */

static void join_share(void) {
    const char *path = getenv("LOCKSTEP_SHARE");
    char beside[4096];
    struct stat about;
    if (!path) return;
    trouble = "its file cannot be used";
    granted = share_granted(path);
    if (!granted || !share_sibling(path, "account", beside, sizeof beside)) return;
    account = share_account(beside, &account_file);
    if (!account) {
        granted = NULL;
        return;
    }
    trouble = NULL;
    if (!stat(path, &about)) share_name = (uint64_t)about.st_ino;
    share_sibling(path, "bell", beside, sizeof beside);
    bell = open(beside, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
}

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("LOCKSTEP_DRIVER");
    void *driver = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!driver) {
        trouble = path ? dlerror() : "LOCKSTEP_DRIVER does not name the driver";
    } else {
        void *found;
#define OWN(name, ...) if ((found = dlsym(driver, #name))) real_##name = found;
#define PASS(name, ...) OWN(name)
#define NAMED(...)
#include "calls.def"
#undef OWN
#undef PASS
#undef NAMED
        their_now = (uint64_t (*)(void))dlsym(driver, "lockstepNow");
        their_wait = (void (*)(const uint32_t *, uint32_t, uint64_t, uint64_t))dlsym(driver, "lockstepWait");
        their_wake = (void (*)(uint32_t *, uint64_t))dlsym(driver, "lockstepWake");
        their_join = (void (*)(void))dlsym(driver, "lockstepJoin");
        their_leave = (void (*)(void))dlsym(driver, "lockstepLeave");
        join_share();
    }
    if (trouble) fprintf(stderr, "lockstep: the share of GPUs cannot be held: %s\n", trouble);
}

/* Without its share a container gets no GPU at all, rather than all of it. */
CUresult cuInit(unsigned flags) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (trouble) return CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
    /* The driver reads its variables at its first start. */
    if (granted) pthread_once(&once, devices_see_share);
    return REAL(cuInit)(flags);
}

/* --- calls found by name --- */

/* The front's own functions, as addresses. */
#define OWN(name, ...) extern char at_##name[] __asm__(#name);
#define PASS(...)
#define NAMED(...)
#include "calls.def"
#undef OWN
#undef PASS
#undef NAMED

typedef struct { const char *symbol, *base; int version; bool per_thread; void **real; void *ours; } Call;
static const Call calls[] = {
#define OWN(name, base, version, per_thread, ...) {#name, #base, version, per_thread, &real_##name, at_##name},
#define PASS(name, base, version, per_thread) {#name, #base, version, per_thread, &real_##name, NULL},
#define NAMED OWN
#include "calls.def"
};

/* The call that a name means from a version of CUDA on: the newest that is not newer than it. */
static const Call *meant(const char *name, int version, bool per_thread, bool *known) {
    const Call *best = NULL;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const Call *one = &calls[i];
        if (strcmp(one->base, name) && strcmp(one->symbol, name)) continue;
        *known = true;
        if (one->version > version || (one->per_thread && !per_thread)) continue;
        if (!best || one->per_thread > best->per_thread ||
            (one->per_thread == best->per_thread && one->version > best->version)) best = one;
    }
    return best;
}

static const Call *at_address(const char *name, const void *address) {
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (*calls[i].real == address && !strcmp(calls[i].base, name)) return &calls[i];
    return NULL;
}

static void say_unknown(const char *name) {
    if (!account) return;
    snprintf(account->stranger, sizeof account->stranger, "%s", name);
    __atomic_add_fetch(&account->unknown, 1, __ATOMIC_RELAXED);
}

/* Give ours in place of what the real driver found. Which one it is, the name and the version tell,
 * also where the driver gives another address here than by its symbols. */
static void exchange(const char *name, void **out, int version, bool per_thread) {
    bool known = false;
    if (!name || !out || !*out) return;
    const Call *found = at_address(name, *out);
    if (!found) found = meant(name, version, per_thread, &known);
    if (!found) {
        if (!known) say_unknown(name);
        return;
    }
    if (!found->ours) return;
    void *none = (void *)lacking;
    __atomic_compare_exchange_n(found->real, &none, *out, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    *out = found->ours;
}

enum { PER_THREAD = 2 };
CUresult cuGetProcAddress(const char *name, void **out, int version, uint64_t flags) {
    CUresult result = REAL(cuGetProcAddress)(name, out, version, flags);
    if (!result) exchange(name, out, version, flags & PER_THREAD);
    return result;
}
CUresult cuGetProcAddress_ptsz(const char *name, void **out, int version, uint64_t flags) {
    CUresult result = REAL(cuGetProcAddress_ptsz)(name, out, version, flags);
    if (!result) exchange(name, out, version, !(flags & 1));
    return result;
}
CUresult cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status) {
    CUresult result = REAL(cuGetProcAddress_v2)(name, out, version, flags, status);
    if (!result) exchange(name, out, version, flags & PER_THREAD);
    return result;
}
CUresult cuGetProcAddress_v2_ptsz(const char *name, void **out, int version, uint64_t flags, int *status) {
    CUresult result = REAL(cuGetProcAddress_v2_ptsz)(name, out, version, flags, status);
    if (!result) exchange(name, out, version, !(flags & 1));
    return result;
}
