/* The calls that ask a card for one thing. A key that the state lacks answers NOT_SUPPORTED. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "state.h"

static Device cards[MOST_CARDS];
static Device slices[MOST_CARDS * MOST_SLICES];
static int users;

/* --- the library --- */

nvmlReturn_t nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    nvmlReturn_t trouble = state_trouble(-1, "nvmlInit");
    if (trouble) return trouble;
    ull any;
    if (!card_integer(-1, "count", &any)) return DRIVER_NOT_LOADED;
    users++;
    return OK;
}
nvmlReturn_t nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
nvmlReturn_t nvmlInit(void) { return nvmlInitWithFlags(0); }
nvmlReturn_t nvmlShutdown(void) {
    if (!users) return UNINITIALIZED;
    users--;
    return OK;
}

const char *nvmlErrorString(nvmlReturn_t result) {
    static const struct { nvmlReturn_t code; const char *text; } known[] = {
        {OK, "Success"}, {UNINITIALIZED, "Uninitialized"}, {INVALID_ARGUMENT, "Invalid Argument"},
        {NOT_SUPPORTED, "Not Supported"}, {NOT_FOUND, "Not Found"},
        {INSUFFICIENT_SIZE, "Insufficient Size"}, {DRIVER_NOT_LOADED, "Driver Not Loaded"},
        {TIMEOUT, "Timeout"}, {GPU_IS_LOST, "GPU is lost"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].code == result) return known[i].text;
    return "Unknown Error";
}

static nvmlReturn_t text_into(int index, const char *name, char *out, unsigned size) {
    char value[TEXT];
    if (!card_text(index, name, value)) return NOT_SUPPORTED;
    if (strlen(value) >= size) return INSUFFICIENT_SIZE;
    strcpy(out, value);
    return OK;
}

static nvmlReturn_t system_text(const char *call, const char *name, char *out, unsigned size) {
    nvmlReturn_t trouble = state_trouble(-1, call);
    return trouble ? trouble : text_into(-1, name, out, size);
}
nvmlReturn_t nvmlSystemGetDriverVersion(char *out, unsigned size) {
    return system_text("nvmlSystemGetDriverVersion", "driver_version", out, size);
}
nvmlReturn_t nvmlSystemGetNVMLVersion(char *out, unsigned size) {
    return system_text("nvmlSystemGetNVMLVersion", "nvml_version", out, size);
}
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *out) {
    ull version;
    if (!card_integer(-1, "cuda_version", &version)) return NOT_SUPPORTED;
    *out = (int)version;
    return OK;
}
nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *out) { return nvmlSystemGetCudaDriverVersion_v2(out); }

/* --- finding cards --- */

nvmlReturn_t check(Device *device, const char *call) {
    if (!users) return UNINITIALIZED;
    if (!device || device->index < 0) return INVALID_ARGUMENT;
    ull lost;
    if (card_integer(device->index, "lost", &lost) && lost) return GPU_IS_LOST;
    return state_trouble(device->index, call);
}

static Device *card(int index) {
    cards[index].index = index;
    cards[index].slice = -1;
    return &cards[index];
}

Device *slice_of(int index, int number) {
    Device *slice = &slices[index * MOST_SLICES + number];
    if (slice->prefix[0]) return slice;
    slice->index = index;
    slice->slice = number;
    snprintf(slice->prefix, sizeof slice->prefix, "mig.%d.", number);
    return slice;
}

int card_count(void) {
    ull count;
    return card_integer(-1, "count", &count) && count <= MOST_CARDS ? (int)count : 0;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *out) {
    if (!users) return UNINITIALIZED;
    nvmlReturn_t trouble = state_trouble(-1, "nvmlDeviceGetCount");
    *out = (unsigned)card_count();
    return trouble;
}
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, Device **out) {
    if (!users) return UNINITIALIZED;
    if ((int)index >= card_count()) return INVALID_ARGUMENT;
    nvmlReturn_t trouble = state_trouble((int)index, "nvmlDeviceGetHandleByIndex");
    *out = card((int)index);
    return trouble;
}

static nvmlReturn_t by_text(const char *name, const char *wanted, Device **out) {
    char value[TEXT];
    if (!users) return UNINITIALIZED;
    for (int i = 0; i < card_count(); i++)
        if (card_text(i, name, value) && !strcasecmp(value, wanted)) {
            *out = card(i);
            return state_trouble(i, "nvmlDeviceGetHandle");
        }
    return NOT_FOUND;
}
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, Device **out) {
    char name[64], value[TEXT];
    if (strncmp(uuid, "MIG-", 4)) return by_text("uuid", uuid, out);
    for (int i = 0; i < card_count(); i++)
        for (int k = 0; k < MOST_SLICES; k++) {
            snprintf(name, sizeof name, "mig.%d.uuid", k);
            if (card_text(i, name, value) && !strcmp(value, uuid)) {
                *out = slice_of(i, k);
                return OK;
            }
        }
    return NOT_FOUND;
}
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus, Device **out) {
    return by_text("pci", bus, out);
}

/* --- one number or text each --- */

static void key_of(Device *device, const char *name, char *out) {
    snprintf(out, 128, "%s%s", device->prefix, name);
}

nvmlReturn_t get_number(Device *device, const char *call, const char *name, ull *out) {
    char key[128];
    nvmlReturn_t trouble = check(device, call);
    if (trouble) return trouble;
    key_of(device, name, key);
    return card_integer(device->index, key, out) ? OK : NOT_SUPPORTED;
}

#define NUMBER(call, key)                                                        \
    nvmlReturn_t call(Device *device, unsigned *out) {                           \
        ull value = 0;                                                           \
        nvmlReturn_t result = get_number(device, #call, key, &value);            \
        if (!result) *out = (unsigned)value;                                     \
        return result;                                                           \
    }
#define LONG(call, key)                                                          \
    nvmlReturn_t call(Device *device, ull *out) { return get_number(device, #call, key, out); }
#define TWO(call, one, other)                                                    \
    nvmlReturn_t call(Device *device, unsigned *first, unsigned *second) {       \
        ull a = 0, b = 0;                                                        \
        nvmlReturn_t result = get_number(device, #call, one, &a);                \
        if (!result) get_number(device, #call, other, &b);                       \
        if (!result) { *first = (unsigned)a; *second = (unsigned)b; }            \
        return result;                                                           \
    }
#define NUMBERED(call, key)                                                      \
    nvmlReturn_t call(Device *device, unsigned which, unsigned *out) {           \
        char name[64];                                                           \
        ull value = 0;                                                           \
        snprintf(name, sizeof name, key ".%u", which);                           \
        nvmlReturn_t result = get_number(device, #call, name, &value);           \
        if (!result) *out = (unsigned)value;                                     \
        return result;                                                           \
    }
#define TEXTUAL(call, key)                                                       \
    nvmlReturn_t call(Device *device, char *out, unsigned size) {                \
        char name[128];                                                          \
        nvmlReturn_t trouble = check(device, #call);                             \
        if (trouble) return trouble;                                             \
        key_of(device, key, name);                                               \
        return text_into(device->index, name, out, size);                        \
    }

TEXTUAL(nvmlDeviceGetUUID, "uuid")
TEXTUAL(nvmlDeviceGetName, "name")
TEXTUAL(nvmlDeviceGetSerial, "serial")
TEXTUAL(nvmlDeviceGetVbiosVersion, "vbios")
NUMBER(nvmlDeviceGetMinorNumber, "minor")
NUMBER(nvmlDeviceGetBrand, "brand")
NUMBER(nvmlDeviceGetArchitecture, "architecture")
NUMBER(nvmlDeviceGetPowerUsage, "power")
NUMBER(nvmlDeviceGetEnforcedPowerLimit, "power_limit")
NUMBER(nvmlDeviceGetFanSpeed, "fan")
NUMBER(nvmlDeviceGetNumFans, "fans")
NUMBER(nvmlDeviceGetPcieReplayCounter, "pcie_replay")
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, "pcie_generation")
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, "pcie_generation_max")
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, "pcie_width")
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, "pcie_width_max")
NUMBER(nvmlDeviceGetNumaNodeId, "numa")
NUMBER(nvmlDeviceGetGpuInstanceId, "gi")
NUMBER(nvmlDeviceGetComputeInstanceId, "ci")
NUMBER(nvmlDeviceGetMaxMigDeviceCount, "mig_max")
NUMBER(nvmlDeviceGetPersistenceMode, "persistence")
NUMBER(nvmlDeviceGetComputeMode, "compute_mode")
NUMBER(nvmlDeviceGetNumGpuCores, "cores")
NUMBER(nvmlDeviceGetPerformanceState, "pstate")
NUMBER(nvmlDeviceGetModuleId, "module")
LONG(nvmlDeviceGetTotalEnergyConsumption, "energy")
LONG(nvmlDeviceGetCurrentClocksEventReasons, "throttle")
LONG(nvmlDeviceGetCurrentClocksThrottleReasons, "throttle")
LONG(nvmlDeviceGetSupportedEventTypes, "event_types")
TWO(nvmlDeviceGetEncoderUtilization, "encoder", "period")
TWO(nvmlDeviceGetDecoderUtilization, "decoder", "period")
TWO(nvmlDeviceGetMigMode, "mig_mode", "mig_mode")
TWO(nvmlDeviceGetEccMode, "ecc", "ecc")
TWO(nvmlDeviceGetCudaComputeCapability, "compute_major", "compute_minor")
NUMBERED(nvmlDeviceGetClockInfo, "clock")
NUMBERED(nvmlDeviceGetMaxClockInfo, "clock_max")
NUMBERED(nvmlDeviceGetTemperature, "temperature")
NUMBERED(nvmlDeviceGetTemperatureThreshold, "temperature_threshold")
NUMBERED(nvmlDeviceGetPcieThroughput, "pcie")
NUMBERED(nvmlDeviceGetFanSpeed_v2, "fan")
NUMBERED(nvmlDeviceGetNvLinkState, "nvlink.state")
NUMBERED(nvmlDeviceGetNvLinkVersion, "nvlink.version")
NUMBERED(nvmlDeviceGetNvLinkRemoteDeviceType, "nvlink.remote_type")

nvmlReturn_t nvmlDeviceGetIndex(Device *device, unsigned *out) {
    nvmlReturn_t trouble = check(device, "nvmlDeviceGetIndex");
    *out = (unsigned)(device ? device->index : 0);
    return trouble;
}

nvmlReturn_t nvmlDeviceGetP2PStatus(Device *one, Device *other, int what, int *out) {
    char name[64];
    ull value;
    nvmlReturn_t trouble = check(one, "nvmlDeviceGetP2PStatus");
    if (trouble) return trouble;
    snprintf(name, sizeof name, "p2p.%d.%d", other->index, what);
    if (!card_integer(one->index, name, &value)) return NOT_SUPPORTED;
    *out = (int)value;
    return OK;
}

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(Device *one, Device *other, unsigned *out) {
    char name[64];
    ull value = 0;
    snprintf(name, sizeof name, "ancestor.%d", other->index);
    nvmlReturn_t result = get_number(one, "nvmlDeviceGetTopologyCommonAncestor", name, &value);
    if (!result) *out = (unsigned)value;
    return result;
}

nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(Device *device, int kind, int counter, int place, ull *out) {
    char name[64];
    (void)place;
    snprintf(name, sizeof name, "ecc.%d.%d", kind, counter);
    return get_number(device, "nvmlDeviceGetMemoryErrorCounter", name, out);
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(Device *device, int kind, int counter, ull *out) {
    char name[64];
    snprintf(name, sizeof name, "ecc.%d.%d", kind, counter);
    return get_number(device, "nvmlDeviceGetTotalEccErrors", name, out);
}
