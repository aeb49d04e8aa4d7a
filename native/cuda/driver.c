/* The stub driver: starting, contexts, and finding its calls by name. */
#define _GNU_SOURCE
#include "devices.h"

#include <stdlib.h>
#include <strings.h>

#include "../nvml/state.h"
#include "memory.h"

static bool ready;
static struct Context primary[WORLD_CARDS];

CUresult cuInit(unsigned flags) {
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    World *w = world();
    if (!w) return CUDA_ERROR_NO_DEVICE;
    if (!ready) devices_see();
    if (!device_count()) return CUDA_ERROR_NO_DEVICE;
    shared_lock(&w->lock);
    Tenant *me = world_me(w);
    shared_unlock(&w->lock);
    if (!me) return CUDA_ERROR_NO_DEVICE;
    ready = true;
    return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *out) {
    ull version = 12080;
    card_integer(-1, "cuda_version", &version);
    *out = (int)version;
    return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **out) {
    static const struct { int code; const char *name; } known[] = {
        {0, "CUDA_SUCCESS"}, {1, "CUDA_ERROR_INVALID_VALUE"}, {2, "CUDA_ERROR_OUT_OF_MEMORY"},
        {3, "CUDA_ERROR_NOT_INITIALIZED"}, {100, "CUDA_ERROR_NO_DEVICE"},
        {101, "CUDA_ERROR_INVALID_DEVICE"}, {201, "CUDA_ERROR_INVALID_CONTEXT"},
        {500, "CUDA_ERROR_NOT_FOUND"}, {600, "CUDA_ERROR_NOT_READY"},
        {801, "CUDA_ERROR_NOT_SUPPORTED"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].code == error) { *out = known[i].name; return CUDA_SUCCESS; }
    *out = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}
CUresult cuGetErrorString(CUresult error, const char **out) { return cuGetErrorName(error, out); }

/* --- devices --- */

CUresult cuDeviceGetCount(int *out) {
    if (!ready) return CUDA_ERROR_NOT_INITIALIZED;
    *out = device_count();
    return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice *out, int ordinal) {
    if (!ready) return CUDA_ERROR_NOT_INITIALIZED;
    if (card_of(ordinal) < 0) return CUDA_ERROR_INVALID_DEVICE;
    *out = ordinal;
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char *out, int size, CUdevice device) {
    char value[TEXT] = "Stub GPU";
    if (card_of(device) < 0) return CUDA_ERROR_INVALID_DEVICE;
    card_text(card_of(device), "name", value);
    snprintf(out, (size_t)size, "%s", value);
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetUuid_v2(CUuuid *out, CUdevice device) {
    char value[TEXT], digits[33];
    size_t count = 0;
    if (card_of(device) < 0 || !card_text(card_of(device), "uuid", value)) return CUDA_ERROR_INVALID_DEVICE;
    for (char *c = value + 4; *c && count < 32; c++)
        if (*c != '-') digits[count++] = *c;
    for (size_t i = 0; i < count / 2; i++) {
        char pair[3] = {digits[2 * i], digits[2 * i + 1], 0};
        out->bytes[i] = (unsigned char)strtoul(pair, NULL, 16);
    }
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetUuid(CUuuid *out, CUdevice device) { return cuDeviceGetUuid_v2(out, device); }
CUresult cuDeviceTotalMem_v2(size_t *out, CUdevice device) {
    ull bytes = 0;
    if (card_of(device) < 0) return CUDA_ERROR_INVALID_DEVICE;
    card_integer(card_of(device), "memory", &bytes);
    *out = bytes;
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int *out, int attribute, CUdevice device) {
    if (card_of(device) < 0) return CUDA_ERROR_INVALID_DEVICE;
    *out = attribute == 16 ? 132 : attribute == 75 ? 9 : 0; /* SMs; compute capability 9.0 */
    return CUDA_SUCCESS;
}

/* --- contexts --- */

/* What a context takes of its card: `context_memory`. */
static uint64_t cost(CUdevice device) {
    ull bytes = 0;
    card_integer(card_of(device), "context_memory", &bytes);
    return bytes;
}
static CUresult make(CUcontext *out, CUdevice device) {
    if (!ready) return CUDA_ERROR_NOT_INITIALIZED;
    if (card_of(device) < 0) return CUDA_ERROR_INVALID_DEVICE;
    if (!card_take(card_of(device), cost(device))) return CUDA_ERROR_OUT_OF_MEMORY;
    CUcontext made = calloc(1, sizeof *made);
    if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
    made->device = device;
    current = *out = made;
    return CUDA_SUCCESS;
}
CUresult misused(const char *what) {
    fprintf(stderr, "stub driver: %s\n", what);
    return CUDA_ERROR_INVALID_HANDLE;
}
CUresult cuCtxCreate_v2(CUcontext *out, unsigned flags, CUdevice device) { (void)flags; return make(out, device); }
CUresult cuCtxCreate_v4(CUcontext *out, void *how, unsigned flags, CUdevice device) {
    (void)how, (void)flags;
    return make(out, device);
}
CUresult cuCtxDestroy_v2(CUcontext one) {
    if (!one || one->dead) return CUDA_ERROR_INVALID_CONTEXT;
    if (current == one) current = NULL;
    memory_end(one);
    card_give(card_of(one->device), cost(one->device));
    /* It stays as a grave, so that what is used of it afterwards is found. */
    one->dead = true;
    return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext one) { current = one; return CUDA_SUCCESS; }
CUresult cuCtxGetCurrent(CUcontext *out) { *out = current; return CUDA_SUCCESS; }
CUresult cuCtxPushCurrent_v2(CUcontext one) { current = one; return CUDA_SUCCESS; }
CUresult cuCtxPopCurrent_v2(CUcontext *out) { if (out) *out = current; current = NULL; return CUDA_SUCCESS; }
CUresult cuCtxGetDevice(CUdevice *out) {
    if (!current) return CUDA_ERROR_INVALID_CONTEXT;
    *out = current->device;
    return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device) {
    if (!ready) return CUDA_ERROR_NOT_INITIALIZED;
    if (card_of(device) < 0) return CUDA_ERROR_INVALID_DEVICE;
    primary[device].device = device;
    primary[device].holders++;
    *out = &primary[device];
    return CUDA_SUCCESS;
}
static void end_primary(CUdevice device) {
    memory_end(&primary[device]);
    primary[device].round++;
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    if (card_of(device) < 0 || !primary[device].holders) return CUDA_ERROR_INVALID_CONTEXT;
    if (!--primary[device].holders) end_primary(device);
    return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
    if (card_of(device) < 0) return CUDA_ERROR_INVALID_DEVICE;
    end_primary(device);
    return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
    if (card_of(device) < 0) return CUDA_ERROR_INVALID_DEVICE;
    *flags = 0;
    *active = primary[device].holders > 0;
    return CUDA_SUCCESS;
}

/* --- by name --- */

CUresult cuMemAlloc_v2(CUdeviceptr *, size_t);
static CUresult alias_alloc(CUdeviceptr *out, size_t bytes) { return cuMemAlloc_v2(out, bytes); }

CUresult cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status) {
    *out = call_by_name(name, version, flags);
    /* Some drivers give another address here than by their symbols. */
    if (getenv("LOCKSTEP_CUDA_ALIAS") && !strcmp(name, "cuMemAlloc")) *out = (void *)alias_alloc;
    if (status) *status = *out ? 0 : 1;
    return *out ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
CUresult cuGetProcAddress(const char *name, void **out, int version, uint64_t flags) {
    return cuGetProcAddress_v2(name, out, version, flags, NULL);
}
