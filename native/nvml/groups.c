/* The calls that answer with more than one value: memory, PCI, processes, fields, GPM, MIG, events. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../cuda/world.h"
#include "calls.h"
#include "state.h"

static ull now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (ull)t.tv_sec * 1000000ULL + (ull)t.tv_nsec / 1000ULL;
}

static ull number_or_zero(Device *device, const char *name) {
    char key[128];
    ull value = 0;
    snprintf(key, sizeof key, "%s%s", device->prefix, name);
    card_integer(device->index, key, &value);
    return value;
}

/* What processes of the stubbed CUDA hold and do; those of them that live. */
static int living(Device *device, Tenant *out, int most) {
    World *w = world();
    int count = 0;
    if (!w || device->slice >= 0 || device->index >= WORLD_CARDS) return 0;
    shared_lock(&w->lock);
    for (uint32_t i = 0; i < w->processes && count < most; i++) {
        const Tenant *one = &w->process[i];
        if (!one->bytes[device->index] && !one->busy[device->index]) continue;
        int holder = world_holder(w, one);
        if (holder < 0) continue;
        out[count] = *one;
        out[count++].pid = holder;
    }
    shared_unlock(&w->lock);
    return count;
}

static ull cuda_bytes(Device *device) {
    static Tenant found[WORLD_PROCESSES];
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    ull sum = 0;
    pthread_mutex_lock(&lock);
    int count = living(device, found, WORLD_PROCESSES);
    for (int i = 0; i < count; i++) sum += found[i].bytes[device->index];
    pthread_mutex_unlock(&lock);
    return sum;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(Device *device, Memory *out) {
    ull total = 0;
    nvmlReturn_t result = get_number(device, "nvmlDeviceGetMemoryInfo", "memory", &total);
    if (result) return result;
    ull used = number_or_zero(device, "memory_used") + number_or_zero(device, "memory_reserved") + cuda_bytes(device);
    *out = (Memory){total, total - used, used};
    return OK;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(Device *device, MemoryV2 *out) {
    ull total = 0;
    nvmlReturn_t result = get_number(device, "nvmlDeviceGetMemoryInfo", "memory", &total);
    if (result) return result;
    ull used = number_or_zero(device, "memory_used") + cuda_bytes(device), reserved = number_or_zero(device, "memory_reserved");
    *out = (MemoryV2){out->version, total, reserved, total - used - reserved, used};
    return OK;
}

nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(Device *device, Bar1 *out) {
    ull total = 0;
    nvmlReturn_t result = get_number(device, "nvmlDeviceGetBAR1MemoryInfo", "bar1", &total);
    ull used = number_or_zero(device, "bar1_used");
    if (!result) *out = (Bar1){total, total - used, used};
    return result;
}

static nvmlReturn_t pci_at(Device *device, const char *call, const char *name, Pci *out) {
    char value[TEXT];
    nvmlReturn_t trouble = check(device, call);
    if (trouble) return trouble;
    if (!card_text(device->index, name, value)) return NOT_SUPPORTED;
    memset(out, 0, sizeof *out);
    if (sscanf(value, "%x:%x:%x", &out->domain, &out->bus, &out->device) != 3) return INVALID_ARGUMENT;
    snprintf(out->busId, sizeof out->busId, "%08X:%02X:%02X.0", out->domain, out->bus, out->device);
    snprintf(out->legacy, sizeof out->legacy, "%04X:%02X:%02X.0", out->domain & 0xffff, out->bus & 0xff,
             out->device & 0xff);
    out->pciDeviceId = (unsigned)number_or_zero(device, "pci_id");
    return OK;
}
nvmlReturn_t nvmlDeviceGetPciInfo_v3(Device *device, Pci *out) {
    return pci_at(device, "nvmlDeviceGetPciInfo", "pci", out);
}
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(Device *device, unsigned link, Pci *out) {
    char name[64];
    snprintf(name, sizeof name, "nvlink.remote.%u", link);
    return pci_at(device, "nvmlDeviceGetNvLinkRemotePciInfo", name, out);
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(Device *device, Utilization *out) {
    ull busy = 0;
    nvmlReturn_t result = get_number(device, "nvmlDeviceGetUtilizationRates", "utilization", &busy);
    if (!result) *out = (Utilization){(unsigned)busy, (unsigned)number_or_zero(device, "utilization_memory")};
    return result;
}

nvmlReturn_t nvmlDeviceGetViolationStatus(Device *device, unsigned policy, Violation *out) {
    char name[64];
    ull time = 0;
    snprintf(name, sizeof name, "violation.%u", policy);
    nvmlReturn_t result = get_number(device, "nvmlDeviceGetViolationStatus", name, &time);
    if (!result) *out = (Violation){now_us(), time};
    return result;
}

nvmlReturn_t nvmlDeviceGetRemappedRows(Device *device, unsigned *corrected, unsigned *uncorrected,
                                       unsigned *pending, unsigned *failed) {
    ull rows = 0;
    nvmlReturn_t result = get_number(device, "nvmlDeviceGetRemappedRows", "remapped_corrected", &rows);
    if (result) return result;
    *corrected = (unsigned)rows;
    *uncorrected = (unsigned)number_or_zero(device, "remapped_uncorrected");
    *pending = (unsigned)number_or_zero(device, "remap_pending");
    *failed = (unsigned)number_or_zero(device, "remap_failed");
    return OK;
}

nvmlReturn_t nvmlDeviceGetFieldValues(Device *device, int count, Field *fields) {
    nvmlReturn_t trouble = check(device, "nvmlDeviceGetFieldValues");
    if (trouble) return trouble;
    for (int i = 0; i < count; i++) {
        char name[64];
        snprintf(name, sizeof name, "field.%u", fields[i].field);
        fields[i].result = card_integer(device->index, name, &fields[i].value.u) ? OK : NOT_SUPPORTED;
        fields[i].type = 3;
        fields[i].timestamp = (int64_t)now_us();
    }
    return OK;
}

/* --- processes: `PID:BYTES[:SM[:GI]]`, separated by commas --- */

typedef struct { unsigned pid; ull memory; unsigned sm; int instance; } Running;

static int running(Device *device, Running *out, int most) {
    char value[TEXT], *rest = NULL;
    char key[128];
    int count = 0;
    Tenant alive[64];
    for (int i = living(device, alive, 64); i-- > 0 && count < most;)
        out[count++] = (Running){(unsigned)alive[i].pid, alive[i].bytes[device->index], 0, -1};
    snprintf(key, sizeof key, "%sprocesses", device->prefix);
    if (!card_text(device->index, key, value)) return count;
    for (char *one = strtok_r(value, ",", &rest); one && count < most; one = strtok_r(NULL, ",", &rest)) {
        Running found = {0, 0, 0, -1};
        if (sscanf(one, "%u:%llu:%u:%d", &found.pid, &found.memory, &found.sm, &found.instance) >= 1)
            out[count++] = found;
    }
    return count;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(Device *device, unsigned *count, Process *out) {
    Running found[256];
    nvmlReturn_t trouble = check(device, "nvmlDeviceGetComputeRunningProcesses");
    if (trouble) return trouble;
    int number = running(device, found, 256);
    bool fits = out && *count >= (unsigned)number;
    *count = (unsigned)number;
    if (number && !fits) return INSUFFICIENT_SIZE;
    for (int i = 0; i < number; i++)
        out[i] = (Process){found[i].pid, found[i].memory, (unsigned)found[i].instance, 0xFFFFFFFF};
    return OK;
}
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(Device *device, unsigned *count, Process *out) {
    (void)out;
    *count = 0;
    return check(device, "nvmlDeviceGetMPSComputeRunningProcesses");
}
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(Device *device, unsigned *count, Process *out) {
    (void)out;
    *count = 0;
    return check(device, "nvmlDeviceGetGraphicsRunningProcesses");
}

nvmlReturn_t nvmlDeviceGetProcessUtilization(Device *device, ProcessSample *out, unsigned *count, ull since) {
    Running found[256];
    (void)since;
    nvmlReturn_t trouble = check(device, "nvmlDeviceGetProcessUtilization");
    if (trouble) return trouble;
    int number = running(device, found, 256);
    bool fits = out && *count >= (unsigned)number;
    *count = (unsigned)number;
    if (!number) return NOT_FOUND;
    if (!fits) return INSUFFICIENT_SIZE;
    for (int i = 0; i < number; i++) out[i] = (ProcessSample){found[i].pid, now_us(), found[i].sm, 0, 0, 0};
    return OK;
}

/* --- GPM: the value of a metric is `gpm.ID` --- */

typedef struct { Device *device; ull taken; } Sample;

nvmlReturn_t nvmlGpmQueryDeviceSupport(Device *device, GpmSupport *out) {
    nvmlReturn_t trouble = check(device, "nvmlGpmQueryDeviceSupport");
    out->supported = (unsigned)(trouble ? 0 : number_or_zero(device, "gpm"));
    return trouble;
}
nvmlReturn_t nvmlGpmSampleAlloc(Sample **out) {
    *out = calloc(1, sizeof **out);
    return *out ? OK : 20;
}
nvmlReturn_t nvmlGpmSampleFree(Sample *sample) {
    free(sample);
    return OK;
}
nvmlReturn_t nvmlGpmSampleGet(Device *device, Sample *sample) {
    nvmlReturn_t trouble = check(device, "nvmlGpmSampleGet");
    if (trouble) return trouble;
    if (!number_or_zero(device, "gpm")) return NOT_SUPPORTED;
    *sample = (Sample){device, now_us()};
    return OK;
}
nvmlReturn_t nvmlGpmMigSampleGet(Device *device, unsigned instance, Sample *sample) {
    char name[64];
    for (int k = 0; k < MOST_SLICES; k++) {
        ull gi;
        snprintf(name, sizeof name, "mig.%d.gi", k);
        if (card_integer(device->index, name, &gi) && gi == instance) {
            nvmlReturn_t trouble = check(device, "nvmlGpmSampleGet");
            if (!trouble) *sample = (Sample){slice_of(device->index, k), now_us()};
            return trouble;
        }
    }
    return INVALID_ARGUMENT;
}
nvmlReturn_t nvmlGpmMetricsGet(GpmMetrics *out) {
    Sample *last = out->second;
    if (!last || !last->device) return INVALID_ARGUMENT;
    nvmlReturn_t trouble = check(last->device, "nvmlGpmMetricsGet");
    for (unsigned i = 0; i < out->count && !trouble; i++) {
        char name[64];
        snprintf(name, sizeof name, "%sgpm.%u", last->device->prefix, out->metrics[i].id);
        out->metrics[i].result =
            card_number(last->device->index, name, &out->metrics[i].value) ? OK : NOT_SUPPORTED;
    }
    return trouble;
}

/* --- fabric and MIG --- */

enum { FABRIC_V2 = 2 << 24 | sizeof(Fabric) };

nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(Device *device, Fabric *out) {
    char value[TEXT];
    ull state = 0;
    nvmlReturn_t result = get_number(device, "nvmlDeviceGetGpuFabricInfo", "fabric.state", &state);
    if (result) return result;
    /* A struct that is not handed over by its address is read here as the address: a crash. */
    if (out->version != FABRIC_V2) return VERSION_MISMATCH;
    out->state = (uint32_t)state;
    out->status = OK;
    out->clique = (uint32_t)number_or_zero(device, "fabric.clique");
    out->health = (uint32_t)number_or_zero(device, "fabric.health");
    memset(out->cluster, 0, sizeof out->cluster);
    if (card_text(device->index, "fabric.cluster", value))
        for (int i = 0; i < 16; i++) sscanf(value + 2 * i, "%2hhx", &out->cluster[i]);
    return OK;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(Device *device, unsigned number, Device **out) {
    char name[64], value[TEXT];
    nvmlReturn_t trouble = check(device, "nvmlDeviceGetMigDeviceHandleByIndex");
    if (trouble) return trouble;
    snprintf(name, sizeof name, "mig.%u.uuid", number);
    if (number >= MOST_SLICES || !card_text(device->index, name, value)) return NOT_FOUND;
    *out = slice_of(device->index, (int)number);
    return OK;
}
nvmlReturn_t nvmlDeviceIsMigDeviceHandle(Device *device, unsigned *out) {
    *out = device && device->slice >= 0;
    return OK;
}
nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Device *slice, Device **out) {
    return nvmlDeviceGetHandleByIndex_v2((unsigned)slice->index, out);
}
nvmlReturn_t nvmlDeviceGetAttributes_v2(Device *device, Attributes *out) {
    ull memory = 0;
    nvmlReturn_t result = get_number(device, "nvmlDeviceGetAttributes", "memory", &memory);
    if (result) return result;
    memset(out, 0, sizeof *out);
    out->memoryMB = memory >> 20;
    out->giSlices = (unsigned)number_or_zero(device, "gi_slices");
    out->ciSlices = (unsigned)number_or_zero(device, "ci_slices");
    out->sm = (unsigned)number_or_zero(device, "sm");
    return OK;
}

/* --- events: `event.N=CARD,TYPE,DATA`, N counting from 1 --- */

typedef struct { ull next; ull types[MOST_CARDS]; } EventSet;

static ull newest_event(void) {
    char name[64], value[TEXT];
    ull number = 0;
    do snprintf(name, sizeof name, "event.%llu", ++number);
    while (state_text(name, value));
    return number;
}

nvmlReturn_t nvmlEventSetCreate(EventSet **out) {
    *out = calloc(1, sizeof **out);
    if (!*out) return 20;
    (*out)->next = newest_event();
    return OK;
}
nvmlReturn_t nvmlEventSetFree(EventSet *set) {
    free(set);
    return OK;
}
nvmlReturn_t nvmlDeviceRegisterEvents(Device *device, ull types, EventSet *set) {
    nvmlReturn_t trouble = check(device, "nvmlDeviceRegisterEvents");
    if (!trouble) set->types[device->index] |= types;
    return trouble;
}
nvmlReturn_t nvmlEventSetWait_v2(EventSet *set, Event *out, unsigned milliseconds) {
    ull until = now_us() + (ull)milliseconds * 1000;
    for (;;) {
        char name[64], value[TEXT];
        unsigned card;
        ull type, data;
        snprintf(name, sizeof name, "event.%llu", set->next);
        if (state_text(name, value)) {
            set->next++;
            if (sscanf(value, "%u,%llu,%llu", &card, &type, &data) == 3 && card < MOST_CARDS &&
                (set->types[card] & type)) {
                Device *device;
                nvmlReturn_t found = nvmlDeviceGetHandleByIndex_v2(card, &device);
                *out = (Event){device, type, data, 0xFFFFFFFF, 0xFFFFFFFF};
                return found;
            }
            continue;
        }
        if (now_us() >= until) return TIMEOUT;
        // A driver wakes for an event; what looks 100 times a second would count as the agent's.
        nanosleep(&(struct timespec){0, 100000000L}, NULL);
    }
}
