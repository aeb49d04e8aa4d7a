/* The part of NVML's interface that the stub offers, as nvidia-ml-py lays it out. */
#pragma once
#include <stdint.h>

typedef int nvmlReturn_t;
typedef unsigned long long ull;

enum {
    OK = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9,
    TIMEOUT = 10,
    GPU_IS_LOST = 15,
    VERSION_MISMATCH = 25,
};

typedef struct { char legacy[16]; unsigned domain, bus, device, pciDeviceId, pciSubSystemId; char busId[32]; } Pci;
typedef struct { ull total, free, used; } Memory;
typedef struct { unsigned version; ull total, reserved, free, used; } MemoryV2;
typedef struct { ull total, free, used; } Bar1;
typedef struct { unsigned gpu, memory; } Utilization;
typedef struct { unsigned pid; ull memory; unsigned gpuInstance, computeInstance; } Process;
typedef struct { unsigned pid; ull timestamp; unsigned sm, memory, encoder, decoder; } ProcessSample;
typedef struct { ull reference, violation; } Violation;
typedef struct { unsigned sm, copy, decoder, encoder, jpeg, ofa, giSlices, ciSlices; ull memoryMB; } Attributes;
typedef union { double d; unsigned ui; ull u; long long s; } Value;
typedef struct { uint32_t field, scope; int64_t timestamp, latency; unsigned type; nvmlReturn_t result; Value value; } Field;
typedef struct { char *shortName, *longName, *unit; } MetricInfo;
typedef struct { unsigned id; nvmlReturn_t result; double value; MetricInfo info; } GpmMetric;
typedef struct { unsigned version, count; void *first, *second; GpmMetric metrics[]; } GpmMetrics;
typedef struct { unsigned version, supported; } GpmSupport;
typedef struct { unsigned version; uint8_t cluster[16]; nvmlReturn_t status; uint32_t clique, state, health; } Fabric;
typedef struct Device Device;
typedef struct { Device *device; ull type, data; unsigned gpuInstance, computeInstance; } Event;
