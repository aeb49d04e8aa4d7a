/* Memory of a share: reserved before the driver is asked, given back when it says no or is done. */
#include <stdlib.h>

#include "front.h"

/* --- what this process holds --- */

enum { BUCKETS = 8192 };
typedef struct Held { uint64_t at, bytes; int card, kind; uint32_t uses; CUcontext context; struct Held *next; } Held;
static Held *held[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static Held **find(int kind, uint64_t at) {
    Held **one = &held[((at >> 4) * 0x9E3779B97F4A7C15ULL) >> 51];
    while (*one && ((*one)->at != at || (*one)->kind != kind)) one = &(*one)->next;
    return one;
}

void note(int kind, uint64_t at, uint64_t bytes, int card, CUcontext context) {
    Held *made = malloc(sizeof *made);
    if (!made) abort();
    pthread_mutex_lock(&lock);
    Held **place = find(kind, at);
    *made = (Held){at, bytes, card, kind, 1, context, *place};
    *place = made;
    pthread_mutex_unlock(&lock);
}

static void use_once_more(int kind, uint64_t at) {
    pthread_mutex_lock(&lock);
    Held *one = *find(kind, at);
    if (one) one->uses++;
    pthread_mutex_unlock(&lock);
}

void forget(int kind, uint64_t at) {
    pthread_mutex_lock(&lock);
    Held **place = find(kind, at), *one = *place;
    bool last = one && !--one->uses;
    if (last) *place = one->next;
    pthread_mutex_unlock(&lock);
    if (!last) return;
    give_back(one->card, one->bytes);
    free(one);
}

/* With the context goes what was allocated in it; physical memory and pools are the device's. */
void forget_context(CUcontext context) {
    Held *gone = NULL;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < BUCKETS; i++)
        for (Held **place = &held[i]; *place;) {
            Held *one = *place;
            if (one->context != context) {
                place = &one->next;
                continue;
            }
            *place = one->next;
            one->next = gone;
            gone = one;
        }
    pthread_mutex_unlock(&lock);
    while (gone) {
        Held *one = gone;
        gone = one->next;
        give_back(one->card, one->bytes);
        free(one);
    }
}

/* Reserve, call, and note or give back. */
#define COUNTED(kind_, card_, bytes_, call_, at_)                   \
    do {                                                            \
        if (!granted) return call_;                                   \
        int card = (card_);                                         \
        uint64_t bytes = (bytes_);                                  \
        if (!reserve(card, bytes)) return CUDA_ERROR_OUT_OF_MEMORY; \
        CUresult result = call_;                                    \
        if (result) give_back(card, bytes);                         \
        else note(kind_, (uint64_t)(at_), bytes, card, (kind_) == HANDLE ? NULL : context_now()); \
        return result;                                              \
    } while (0)
#define FREED(kind_, at_, call_)                     \
    do {                                             \
        CUresult result = call_;                     \
        if (granted && !result) forget(kind_, (uint64_t)(at_)); \
        return result;                               \
    } while (0)

CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t size) {
    COUNTED(PLAIN, share_of_context(), size, REAL(cuMemAlloc_v2)(out, size), *out);
}
CUresult cuMemFree_v2(CUdeviceptr at) { FREED(PLAIN, at, REAL(cuMemFree_v2)(at)); }
CUresult cuMemAllocManaged(CUdeviceptr *out, size_t size, unsigned flags) {
    COUNTED(PLAIN, share_of_context(), size, REAL(cuMemAllocManaged)(out, size, flags), *out);
}
CUresult cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width, size_t height, unsigned element) {
    if (!granted) return REAL(cuMemAllocPitch_v2)(out, pitch, width, height, element);
    int card = share_of_context();
    /* The pitch is the driver's to choose: 512 bytes on all cards so far; the rest is settled after. */
    uint64_t bytes = (width + 511) / 512 * 512 * height;
    if (!reserve(card, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuMemAllocPitch_v2)(out, pitch, width, height, element);
    if (result) {
        give_back(card, bytes);
        return result;
    }
    uint64_t real_bytes = (uint64_t)*pitch * height;
    if (real_bytes > bytes && !reserve(card, real_bytes - bytes)) {
        REAL(cuMemFree_v2)(*out);
        give_back(card, bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (real_bytes < bytes) give_back(card, bytes - real_bytes);
    note(PLAIN, *out, real_bytes, card, context_now());
    return result;
}

/* --- in the order of a stream --- */

static struct { CUmemoryPool pool; int card; } pools[256];
static size_t pool_count;

CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *how) {
    CUresult result = REAL(cuMemPoolCreate)(out, how);
    if (!granted || result) return result;
    pthread_mutex_lock(&lock);
    pools[pool_count++ % 256].pool = *out;
    pools[(pool_count - 1) % 256].card = how->location.type == 1 ? share_of_device(how->location.id) : -1;
    pthread_mutex_unlock(&lock);
    return result;
}
/* A pool that was not made here is a device's own: that of the current context. */
static int card_of_pool(CUmemoryPool pool) {
    int card = -2;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < (pool_count < 256 ? pool_count : 256); i++)
        if (pools[i].pool == pool) card = pools[i].card;
    pthread_mutex_unlock(&lock);
    return card == -2 ? share_of_context() : card;
}
#define BY_STREAM(suffix, per_thread)                                                                               \
    CUresult cuMemAllocAsync##suffix(CUdeviceptr *out, size_t size, CUstream stream) {                      \
        /* In a capture it becomes a node, whose memory the graph has when it is instantiated. */           \
        if (granted && capturing(stream, per_thread)) return REAL(cuMemAllocAsync##suffix)(out, size, stream); \
        COUNTED(PLAIN, share_of_context(), size, REAL(cuMemAllocAsync##suffix)(out, size, stream), *out);   \
    }                                                                                                       \
    CUresult cuMemAllocFromPoolAsync##suffix(CUdeviceptr *out, size_t size, CUmemoryPool pool, CUstream s) { \
        if (granted && capturing(s, per_thread)) return REAL(cuMemAllocFromPoolAsync##suffix)(out, size, pool, s); \
        COUNTED(PLAIN, card_of_pool(pool), size, REAL(cuMemAllocFromPoolAsync##suffix)(out, size, pool, s), *out); \
    }                                                                                                       \
    CUresult cuMemFreeAsync##suffix(CUdeviceptr at, CUstream stream) {                                      \
        if (granted && capturing(stream, per_thread)) return REAL(cuMemFreeAsync##suffix)(at, stream);      \
        FREED(PLAIN, at, REAL(cuMemFreeAsync##suffix)(at, stream));                                         \
    }
BY_STREAM(, false)
BY_STREAM(_ptsz, true)

/* --- arrays --- */

static uint64_t wide(int format) {
    switch (format) {
    case 0x01: case 0x08: case 0xc0: case 0xc3: return 1;                       /* 8 bits */
    case 0x02: case 0x09: case 0x10: case 0xc1: case 0xc4: return 2;            /* 16 bits, half */
    default: return 4;
    }
}
static uint64_t at_least_one(uint64_t n) { return n ? n : 1; }
static uint64_t volume(const CUarray3DShape *s, unsigned level) {
    uint64_t points = at_least_one(s->width >> level) * at_least_one(s->height >> level) * at_least_one(s->depth >> level);
    return points * at_least_one(s->channels) * wide(s->format);
}
CUresult cuArrayCreate_v2(CUarray *out, const CUarrayShape *s) {
    CUarray3DShape whole = {s->width, s->height, 0, s->format, s->channels, 0};
    COUNTED(ARRAY, share_of_context(), volume(&whole, 0), REAL(cuArrayCreate_v2)(out, s), (uintptr_t)*out);
}
CUresult cuArray3DCreate_v2(CUarray *out, const CUarray3DShape *s) {
    COUNTED(ARRAY, share_of_context(), volume(s, 0), REAL(cuArray3DCreate_v2)(out, s), (uintptr_t)*out);
}
CUresult cuArrayDestroy(CUarray one) { FREED(ARRAY, (uintptr_t)one, REAL(cuArrayDestroy)(one)); }
CUresult cuMipmappedArrayCreate(CUarray *out, const CUarray3DShape *s, unsigned levels) {
    uint64_t all = 0;
    for (unsigned level = 0; level < levels && level < 32; level++) all += volume(s, level);
    COUNTED(ARRAY, share_of_context(), all, REAL(cuMipmappedArrayCreate)(out, s, levels), (uintptr_t)*out);
}
CUresult cuMipmappedArrayDestroy(CUarray one) { FREED(ARRAY, (uintptr_t)one, REAL(cuMipmappedArrayDestroy)(one)); }

/* --- virtual memory: counted until the handle is released and its last mapping is gone --- */

typedef struct Mapping { uint64_t at, bytes, handle; struct Mapping *next; } Mapping;
static Mapping *mappings;

CUresult cuMemCreate(CUhandle *out, size_t size, const CUmemAllocationProp *how, unsigned long long flags) {
    COUNTED(HANDLE, how->location.type == 1 ? share_of_device(how->location.id) : -1, size,
            REAL(cuMemCreate)(out, size, how, flags), *out);
}
CUresult cuMemRelease(CUhandle handle) { FREED(HANDLE, handle, REAL(cuMemRelease)(handle)); }
CUresult cuMemRetainAllocationHandle(CUhandle *out, void *at) {
    CUresult result = REAL(cuMemRetainAllocationHandle)(out, at);
    if (granted && !result) use_once_more(HANDLE, *out);
    return result;
}
CUresult cuMemMap(CUdeviceptr at, size_t size, size_t offset, CUhandle handle, unsigned long long flags) {
    CUresult result = REAL(cuMemMap)(at, size, offset, handle, flags);
    if (!granted || result) return result;
    use_once_more(HANDLE, handle);
    Mapping *made = malloc(sizeof *made);
    if (!made) abort();
    pthread_mutex_lock(&lock);
    *made = (Mapping){at, size, handle, mappings};
    mappings = made;
    pthread_mutex_unlock(&lock);
    return result;
}
CUresult cuMemUnmap(CUdeviceptr at, size_t size) {
    CUresult result = REAL(cuMemUnmap)(at, size);
    if (!granted || result) return result;
    Mapping *gone = NULL;
    pthread_mutex_lock(&lock);
    for (Mapping **place = &mappings; *place;) {
        Mapping *one = *place;
        if (one->at < at || one->at >= at + size) {
            place = &one->next;
            continue;
        }
        *place = one->next;
        one->next = gone;
        gone = one;
    }
    pthread_mutex_unlock(&lock);
    while (gone) {
        Mapping *one = gone;
        gone = one->next;
        forget(HANDLE, one->handle);
        free(one);
    }
    return result;
}

/* --- what there is, as the container sees it --- */

CUresult cuMemGetInfo_v2(size_t *unused, size_t *total) {
    CUresult result = REAL(cuMemGetInfo_v2)(unused, total);
    int card = granted && !result ? share_of_context() : -1;
    uint64_t limit = card < 0 ? 0 : granted->card[card].limit;
    if (!limit) return result;
    uint64_t used = share_used(card), left = used < limit ? limit - used : 0;
    if (*unused > left) *unused = left;
    if (*total > limit) *total = limit;
    return result;
}
CUresult cuDeviceTotalMem_v2(size_t *out, CUdevice device) {
    CUresult result = REAL(cuDeviceTotalMem_v2)(out, device);
    int card = granted && !result ? share_of_device(device) : -1;
    uint64_t limit = card < 0 ? 0 : granted->card[card].limit;
    if (limit && *out > limit) *out = limit;
    return result;
}
