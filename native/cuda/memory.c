/* The stub driver's memory: bytes are counted, by process and card, and lie nowhere. */
#include <stdlib.h>

#include "../nvml/state.h"
#include "memory.h"
#include "streams.h"

CUresult cuGraphAddMemAllocNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUallocNode *);
CUresult cuGraphAddMemFreeNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUdeviceptr);

/* A piece of memory: its address, its size, its card; handles of VMM count their mappings. */
typedef struct Piece { uint64_t at, bytes; int card; uint32_t uses; CUcontext context; struct Piece *next; } Piece;
enum { BUCKETS = 4096 };
static Piece *pieces[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t next_address = 0x700000000000ULL;

static Piece **find(uint64_t at) {
    Piece **one = &pieces[(at >> 9) % BUCKETS];
    while (*one && (*one)->at != at) one = &(*one)->next;
    return one;
}

bool card_take(int card, uint64_t bytes) {
    World *w = world();
    ull total = 0, reserved = 0;
    card_integer(card, "memory", &total);
    card_integer(card, "memory_reserved", &reserved);
    shared_lock(&w->lock);
    Tenant *me = world_me(w);
    bool fits = me && world_used(w, card) + bytes <= total - reserved;
    if (!fits && me) {
        world_bury(w);
        fits = world_used(w, card) + bytes <= total - reserved;
    }
    if (fits) me->bytes[card] += bytes;
    if (world_used(w, card) > w->cards[card].most_used) {
        world_bury(w);
        uint64_t used = world_used(w, card);
        if (used > w->cards[card].most_used) w->cards[card].most_used = used;
    }
    shared_unlock(&w->lock);
    return fits;
}

void card_give(int card, uint64_t bytes) {
    World *w = world();
    shared_lock(&w->lock);
    Tenant *me = world_me(w);
    if (me) me->bytes[card] -= bytes;
    shared_unlock(&w->lock);
}

static CUresult allocate_in(uint64_t *out, uint64_t bytes, int card, CUcontext context) {
    if (card < 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (!bytes || !out) return CUDA_ERROR_INVALID_VALUE;
    if (!card_take(card, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    Piece *made = calloc(1, sizeof *made);
    if (!made) abort();
    pthread_mutex_lock(&lock);
    *made = (Piece){next_address, bytes, card, 1, context, NULL};
    next_address += (bytes + 511) / 512 * 512;
    Piece **place = find(made->at);
    *place = made;
    *out = made->at;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

static CUresult allocate(uint64_t *out, uint64_t bytes, int card) { return allocate_in(out, bytes, card, current); }

void memory_end(CUcontext context) {
    for (size_t i = 0; i < BUCKETS; i++) {
        pthread_mutex_lock(&lock);
        for (Piece **place = &pieces[i]; *place;) {
            Piece *one = *place;
            if (one->context != context) {
                place = &one->next;
                continue;
            }
            *place = one->next;
            card_give(one->card, one->bytes);
            free(one);
        }
        pthread_mutex_unlock(&lock);
    }
}

static CUresult drop(uint64_t at) {
    pthread_mutex_lock(&lock);
    Piece **place = find(at), *one = *place;
    bool last = one && !--one->uses;
    if (last) *place = one->next;
    pthread_mutex_unlock(&lock);
    if (!one) return CUDA_ERROR_INVALID_VALUE;
    if (last) {
        card_give(one->card, one->bytes);
        free(one);
    }
    return CUDA_SUCCESS;
}

/* --- plain --- */

CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t bytes) {
    CUresult unsafe = unsafe_now();
    return unsafe ? unsafe : allocate(out, bytes, current_card());
}
CUresult cuMemFree_v2(CUdeviceptr at) { return drop(at); }
CUresult cuMemAllocManaged(CUdeviceptr *out, size_t bytes, unsigned flags) {
    (void)flags;
    return allocate(out, bytes, current_card());
}
CUresult cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width, size_t height, unsigned element) {
    (void)element;
    *pitch = (width + 511) / 512 * 512;
    return allocate(out, *pitch * height, current_card());
}
CUresult cuMemGetInfo_v2(size_t *unused, size_t *total) {
    ull all = 0, reserved = 0;
    int card = current_card();
    if (card < 0) return CUDA_ERROR_INVALID_CONTEXT;
    card_integer(card, "memory", &all);
    card_integer(card, "memory_reserved", &reserved);
    World *w = world();
    shared_lock(&w->lock);
    world_bury(w);
    *total = all;
    *unused = all - reserved - world_used(w, card);
    shared_unlock(&w->lock);
    return CUDA_SUCCESS;
}
CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr at) {
    pthread_mutex_lock(&lock);
    Piece *one = *find(at);
    if (one && base) *base = one->at;
    if (one && bytes) *bytes = one->bytes;
    pthread_mutex_unlock(&lock);
    return one ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* --- in the order of a stream; a pool is its card, and keeps nothing --- */

struct Pool { int card; };

/* In a capture it becomes a node of the graph. */
static bool captured(CUstream stream, CUdeviceptr *out, size_t bytes, int device) {
    if ((uintptr_t)stream <= 2 || !stream->captured) return false;
    CUallocNode node = {.pool = {.type = 1, .location = {1, device}}, .bytes = bytes};
    cuGraphAddMemAllocNode(NULL, stream->captured, NULL, 0, &node);
    *out = node.pointer;
    return true;
}
CUresult cuMemAllocAsync(CUdeviceptr *out, size_t bytes, CUstream stream) {
    if (!current) return CUDA_ERROR_INVALID_CONTEXT;
    return captured(stream, out, bytes, current->device) ? CUDA_SUCCESS : allocate(out, bytes, current_card());
}
CUresult cuMemFreeAsync(CUdeviceptr at, CUstream stream) {
    if ((uintptr_t)stream > 2 && stream->captured) return cuGraphAddMemFreeNode(NULL, stream->captured, NULL, 0, at);
    return drop(at);
}
CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *how) {
    if (card_of(how->location.id) < 0) return CUDA_ERROR_INVALID_VALUE;
    *out = malloc(sizeof **out);
    (*out)->card = card_of(how->location.id);
    return CUDA_SUCCESS;
}
CUresult cuMemPoolDestroy(CUmemoryPool pool) { free(pool); return CUDA_SUCCESS; }
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t bytes, CUmemoryPool pool, CUstream stream) {
    if (!current) return CUDA_ERROR_INVALID_CONTEXT;
    return captured(stream, out, bytes, current->device) ? CUDA_SUCCESS : allocate_in(out, bytes, pool->card, NULL);
}

/* --- arrays --- */

struct Array { uint64_t at; };

static CUresult array(CUarray *out, uint64_t bytes) {
    uint64_t at;
    CUresult result = allocate(&at, bytes, current_card());
    if (result) return result;
    *out = malloc(sizeof **out);
    (*out)->at = at;
    return CUDA_SUCCESS;
}
static uint64_t wide(int format) {
    return format == 0x01 || format == 0x08 ? 1 : format == 0x02 || format == 0x09 || format == 0x10 ? 2 : 4;
}
CUresult cuArrayCreate_v2(CUarray *out, const CUarrayShape *shape) {
    return array(out, shape->width * (shape->height ? shape->height : 1) * shape->channels * wide(shape->format));
}
CUresult cuArray3DCreate_v2(CUarray *out, const CUarray3DShape *shape) {
    uint64_t points = shape->width * (shape->height ? shape->height : 1) * (shape->depth ? shape->depth : 1);
    return array(out, points * shape->channels * wide(shape->format));
}
CUresult cuArrayDestroy(CUarray one) {
    CUresult result = drop(one->at);
    free(one);
    return result;
}
CUresult cuMipmappedArrayCreate(CUarray *out, const CUarray3DShape *shape, unsigned levels) {
    uint64_t bytes = 0, w = shape->width, h = shape->height, d = shape->depth;
    for (unsigned level = 0; level < levels; level++, w /= 2, h /= 2, d /= 2)
        bytes += (w ? w : 1) * (h ? h : 1) * (d ? d : 1) * shape->channels * wide(shape->format);
    return array(out, bytes);
}
CUresult cuMipmappedArrayDestroy(CUarray one) { return cuArrayDestroy(one); }

/* --- virtual memory: a handle's memory stays until it is released and its last mapping is gone --- */

typedef struct { uint64_t at, handle; } Mapping;
static Mapping mappings[65536];
static size_t mapped;

CUresult cuMemCreate(CUhandle *out, size_t bytes, const CUmemAllocationProp *how, unsigned long long flags) {
    (void)flags;
    return allocate_in(out, bytes, how->location.type == 1 ? card_of(how->location.id) : -1, NULL);
}
CUresult cuMemRelease(CUhandle handle) { return drop(handle); }
CUresult cuMemRetainAllocationHandle(CUhandle *out, void *at) {
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < mapped; i++)
        if (mappings[i].at == (uint64_t)at) {
            (*find(mappings[i].handle))->uses++;
            *out = mappings[i].handle;
            result = CUDA_SUCCESS;
            break;
        }
    pthread_mutex_unlock(&lock);
    return result;
}
CUresult cuMemAddressReserve(CUdeviceptr *out, size_t bytes, size_t align, CUdeviceptr where, unsigned long long flags) {
    (void)align, (void)where, (void)flags;
    pthread_mutex_lock(&lock);
    *out = next_address;
    next_address += (bytes + 511) / 512 * 512;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}
CUresult cuMemAddressFree(CUdeviceptr at, size_t bytes) { (void)at, (void)bytes; return CUDA_SUCCESS; }
CUresult cuMemMap(CUdeviceptr at, size_t bytes, size_t offset, CUhandle handle, unsigned long long flags) {
    (void)bytes, (void)offset, (void)flags;
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    Piece *one = *find(handle);
    if (one && mapped < sizeof mappings / sizeof *mappings) {
        one->uses++;
        mappings[mapped++] = (Mapping){at, handle};
        result = CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return result;
}
CUresult cuMemUnmap(CUdeviceptr at, size_t bytes) {
    uint64_t gone[64];
    size_t count = 0;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < mapped && count < 64;)
        if (mappings[i].at >= at && mappings[i].at < at + bytes) {
            gone[count++] = mappings[i].handle;
            mappings[i] = mappings[--mapped];
        } else {
            i++;
        }
    pthread_mutex_unlock(&lock);
    for (size_t i = 0; i < count; i++) drop(gone[i]);
    return count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemSetAccess(CUdeviceptr at, size_t bytes, const void *access, size_t count) {
    (void)at, (void)bytes, (void)access, (void)count;
    return CUDA_SUCCESS;
}

/* --- between processes: memory is whose it was allocated by --- */

CUresult cuIpcGetMemHandle(CUipcMem *out, CUdeviceptr at) {
    memset(out, 0, sizeof *out);
    memcpy(out->bytes, &at, sizeof at);
    return CUDA_SUCCESS;
}
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *out, CUipcMem handle, unsigned flags) {
    (void)flags;
    memcpy(out, handle.bytes, sizeof *out);
    *out |= 1ULL << 60;
    return CUDA_SUCCESS;
}
CUresult cuIpcCloseMemHandle(CUdeviceptr at) { return at >> 60 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }
