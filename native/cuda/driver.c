/* The stub driver: starting, devices, contexts, and finding its calls by name. */
#define _GNU_SOURCE
#include "driver.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <strings.h>

#include "../nvml/state.h"

static bool ready;
static int visible[WORLD_CARDS], visible_count;
__thread CUcontext current;
static struct Context primary[WORLD_CARDS];

static int by_uuid(const char *wanted, int cards) {
    char value[TEXT];
    for (int i = 0; i < cards; i++)
        if (card_text(i, "uuid", value) && !strcasecmp(value, wanted)) return i;
    return -1;
}

/* $CUDA_VISIBLE_DEVICES: numbers or UUIDs; the first that does not exist ends the list. */
static void see(void) {
    ull count = 0;
    card_integer(-1, "count", &count);
    int cards = count < WORLD_CARDS ? (int)count : WORLD_CARDS;
    const char *given = getenv("CUDA_VISIBLE_DEVICES");
    visible_count = 0;
    if (!given) {
        for (int i = 0; i < cards; i++) visible[visible_count++] = i;
        return;
    }
    char *copy = strdup(given), *rest = NULL;
    for (char *one = strtok_r(copy, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
        int card = strncmp(one, "GPU-", 4) ? atoi(one) : by_uuid(one, cards);
        if (card < 0 || card >= cards || visible_count == WORLD_CARDS) break;
        visible[visible_count++] = card;
    }
    free(copy);
}

int device_count(void) { return visible_count; }
int card_of(CUdevice device) { return device >= 0 && device < visible_count ? visible[device] : -1; }
int current_card(void) { return current ? card_of(current->device) : -1; }

CUresult cuInit(unsigned flags) {
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    World *w = world();
    if (!w) return CUDA_ERROR_NO_DEVICE;
    if (!ready) see();
    if (!visible_count) return CUDA_ERROR_NO_DEVICE;
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
    *out = visible_count;
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
CUresult cuCtxCreate_v2(CUcontext *out, unsigned flags, CUdevice device) { (void)flags; return make(out, device); }
CUresult cuCtxCreate_v4(CUcontext *out, void *how, unsigned flags, CUdevice device) {
    (void)how, (void)flags;
    return make(out, device);
}
CUresult cuCtxDestroy_v2(CUcontext one) {
    if (!one) return CUDA_ERROR_INVALID_CONTEXT;
    if (current == one) current = NULL;
    card_give(card_of(one->device), cost(one->device));
    free(one);
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
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    if (card_of(device) < 0 || !primary[device].holders) return CUDA_ERROR_INVALID_CONTEXT;
    primary[device].holders--;
    return CUDA_SUCCESS;
}

/* --- by name --- */

CUresult cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status) {
    char full[128];
    (void)version, (void)flags;
    Dl_info about;
    if (!dladdr((void *)&cuGetProcAddress_v2, &about)) return CUDA_ERROR_NOT_FOUND;
    void *self = dlopen(about.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    *out = NULL;
    for (int number = 4; number >= 1 && self && !*out; number--) {
        if (number > 1) snprintf(full, sizeof full, "%s_v%d", name, number);
        else snprintf(full, sizeof full, "%s", name);
        *out = dlsym(self, full);
    }
    if (self) dlclose(self);
    if (status) *status = *out ? 0 : 1;
    return *out ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
CUresult cuGetProcAddress(const char *name, void **out, int version, uint64_t flags) {
    return cuGetProcAddress_v2(name, out, version, flags, NULL);
}
