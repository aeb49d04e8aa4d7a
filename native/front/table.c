/* The real driver, opened by its path, and a table of all its calls.
 *
 * $LOCKSTEP_DRIVER is its path; $LOCKSTEP_SHARE the share's file, $LOCKSTEP_BELL the bell's.
 * A call that the real driver lacks answers that it is not supported. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/futex.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>

#include "front.h"

static CUresult lacking(void) { return CUDA_ERROR_NOT_SUPPORTED; }

#define OWN(name) void *real_##name = (void *)lacking;
#define PASS(name) __attribute__((visibility("hidden"))) void *real_##name = (void *)lacking;
#include "calls.def"
#undef OWN
#undef PASS

Share *share;
uint32_t *bell;
uint64_t share_name, bell_name;
static const char *trouble;

static uint64_t (*their_now)(void);
static void (*their_wait)(const uint32_t *, uint32_t, uint64_t, uint64_t);
static void (*their_wake)(uint32_t *, uint64_t);

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

static uint64_t number_of(const char *path) {
    struct stat about;
    return stat(path, &about) ? 0 : (uint64_t)about.st_ino;
}

static void join_share(void) {
    const char *path = getenv("LOCKSTEP_SHARE"), *ring = getenv("LOCKSTEP_BELL");
    if (!path) return;
    share = shared_map(path, sizeof(Share), offsetof(Share, lock), false);
    if (share && (share->magic != SHARE_MAGIC || share->version != SHARE_VERSION || share->cards > SHARE_CARDS)) share = NULL;
    if (!share) {
        trouble = "its file cannot be used";
        return;
    }
    share_name = number_of(path);
    int fd = ring ? open(ring, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) return;
    bell = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (bell == MAP_FAILED) bell = NULL;
    else bell_name = number_of(ring);
}

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("LOCKSTEP_DRIVER");
    void *driver = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!driver) {
        trouble = path ? dlerror() : "LOCKSTEP_DRIVER does not name the driver";
    } else {
        void *found;
#define OWN(name) if ((found = dlsym(driver, #name))) real_##name = found;
#define PASS(name) OWN(name)
#include "calls.def"
#undef OWN
#undef PASS
        their_now = (uint64_t (*)(void))dlsym(driver, "lockstepNow");
        their_wait = (void (*)(const uint32_t *, uint32_t, uint64_t, uint64_t))dlsym(driver, "lockstepWait");
        their_wake = (void (*)(uint32_t *, uint64_t))dlsym(driver, "lockstepWake");
        join_share();
    }
    if (trouble) fprintf(stderr, "lockstep: the share of GPUs cannot be held: %s\n", trouble);
}

/* Without its share a container gets no GPU at all, rather than all of it. */
CUresult cuInit(unsigned flags) { return trouble ? CUDA_ERROR_SHARED_OBJECT_INIT_FAILED : REAL(cuInit)(flags); }

/* --- calls found by name --- */

static const struct { const char *name; void **real; void *ours; } own[] = {
#define OWN(name) {#name, &real_##name, NULL},
#define PASS(name)
#include "calls.def"
#undef OWN
#undef PASS
};

static const char *const known[] = {
#define OWN(name) #name,
#define PASS(name) #name,
#include "calls.def"
#undef OWN
#undef PASS
};

static void *ours(size_t i) {
    static void *self;
    if (!self) {
        Dl_info about;
        if (dladdr((void *)&cuInit, &about)) self = dlopen(about.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    }
    return self ? dlsym(self, own[i].name) : NULL;
}

static bool begins(const char *name) {
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strncmp(known[i], name, length) && (!known[i][length] || known[i][length] == '_')) return true;
    return false;
}

/* Give ours in place of what the real driver found: which one it is, its address tells. */
static void exchange(const char *name, void **out) {
    if (!out || !*out) return;
    if (share && name && !begins(name)) __atomic_add_fetch(&share->unknown, 1, __ATOMIC_RELAXED);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (*own[i].real == *out) {
            void *found = ours(i);
            if (found) *out = found;
            return;
        }
}

CUresult cuGetProcAddress(const char *name, void **out, int version, uint64_t flags) {
    CUresult result = REAL(cuGetProcAddress)(name, out, version, flags);
    if (!result) exchange(name, out);
    return result;
}
CUresult cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status) {
    CUresult result = REAL(cuGetProcAddress_v2)(name, out, version, flags, status);
    if (!result) exchange(name, out);
    return result;
}
CUresult cuGetProcAddress_v2_ptsz(const char *name, void **out, int version, uint64_t flags, int *status) {
    CUresult result = REAL(cuGetProcAddress_v2_ptsz)(name, out, version, flags, status);
    if (!result) exchange(name, out);
    return result;
}
