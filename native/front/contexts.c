/* Contexts that end: their events are asked about no more, and what was allocated in them is free. */
#include "front.h"

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device), cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active);
CUresult cuCtxFromGreenCtx(CUcontext *out, void *green);

#define ENDS(context_, call_)                            \
    do {                                                 \
        CUcontext context = (context_);                  \
        if (granted && context) meter_forget_context(context); \
        CUresult result = call_;                         \
        if (granted && context && !result) forget_context(context); \
        return result;                                   \
    } while (0)

CUresult cuCtxDestroy(CUcontext context_) { ENDS(context_, REAL(cuCtxDestroy)(context_)); }
CUresult cuCtxDestroy_v2(CUcontext context_) { ENDS(context_, REAL(cuCtxDestroy_v2)(context_)); }
CUresult cuCtxDetach(CUcontext context_) { ENDS(context_, REAL(cuCtxDetach)(context_)); }

enum { DEVICES = 64 };
static CUcontext primary[DEVICES];

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device) {
    CUresult result = REAL(cuDevicePrimaryCtxRetain)(out, device);
    if (!result && device >= 0 && device < DEVICES) __atomic_store_n(&primary[device], *out, __ATOMIC_RELEASE);
    return result;
}
/* The primary context of a device. The driver is asked for one that was never retained here: a runtime may
 * have it by a table of its own. */
static CUcontext primary_of(CUdevice device) {
    CUcontext found = device >= 0 && device < DEVICES ? __atomic_load_n(&primary[device], __ATOMIC_ACQUIRE) : NULL;
    unsigned flags;
    int active = 0;
    if (!granted || found) return found;
    if (REAL(cuDevicePrimaryCtxGetState)(device, &flags, &active) || !active) return NULL;
    if (REAL(cuDevicePrimaryCtxRetain)(&found, device)) return NULL;
    REAL(cuDevicePrimaryCtxRelease_v2)(device);
    return found;
}
CUresult cuDevicePrimaryCtxReset(CUdevice device) { ENDS(primary_of(device), REAL(cuDevicePrimaryCtxReset)(device)); }
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
    ENDS(primary_of(device), REAL(cuDevicePrimaryCtxReset_v2)(device));
}

/* The last release ends it; which is the last, the driver says afterwards. */
static CUresult released(CUdevice device, CUresult (*call)(CUdevice)) {
    CUcontext context = primary_of(device);
    if (context) meter_forget_context(context);
    CUresult result = call(device);
    unsigned flags;
    int active = 1;
    if (context && !result && !REAL(cuDevicePrimaryCtxGetState)(device, &flags, &active) && !active) forget_context(context);
    return result;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice device) { return released(device, REAL(cuDevicePrimaryCtxRelease)); }
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) { return released(device, REAL(cuDevicePrimaryCtxRelease_v2)); }

CUresult cuGreenCtxDestroy(void *green) {
    CUcontext of = NULL;
    if (granted && REAL(cuCtxFromGreenCtx)(&of, green)) of = NULL;
    ENDS(of, REAL(cuGreenCtxDestroy)(green));
}
