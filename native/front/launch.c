/* Every way to give the card work, through the gate. */
#include "front.h"

enum { COPY_TO = 1, COPY_FROM = 2, COPY_ON = 3, COPY_ANY = 4 };

/* Copies of like size cost alike. */
static uint64_t copy_kind(int direction, size_t bytes) {
    return (uint64_t)direction << 8 | (uint64_t)(64 - __builtin_clzll(bytes | 1));
}

#define GATED(kind_, stream_, per_thread_, call_)              \
    do {                                                       \
        if (!share) return call_;                              \
        Pass pass = gate_enter(kind_, stream_, per_thread_);   \
        CUresult result = call_;                               \
        gate_leave(pass, stream_, per_thread_, result);        \
        return result;                                         \
    } while (0)

#define WORK(suffix, per_thread)                                                                                     \
    CUresult cuLaunchKernel##suffix(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,   \
                                    unsigned bz, unsigned bytes, CUstream s, void **parameters, void **extra) {      \
        GATED((uintptr_t)f, s, per_thread,                                                                           \
              REAL(cuLaunchKernel##suffix)(f, gx, gy, gz, bx, by, bz, bytes, s, parameters, extra));                 \
    }                                                                                                                \
    CUresult cuLaunchKernelEx##suffix(const CUlaunchConfig *how, CUfunction f, void **parameters, void **extra) {    \
        GATED((uintptr_t)f, how->stream, per_thread, REAL(cuLaunchKernelEx##suffix)(how, f, parameters, extra));     \
    }                                                                                                                \
    CUresult cuLaunchCooperativeKernel##suffix(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,     \
                                               unsigned by, unsigned bz, unsigned bytes, CUstream s, void **given) { \
        GATED((uintptr_t)f, s, per_thread,                                                                           \
              REAL(cuLaunchCooperativeKernel##suffix)(f, gx, gy, gz, bx, by, bz, bytes, s, given));                  \
    }                                                                                                                \
    CUresult cuGraphLaunch##suffix(CUgraphExec exec, CUstream s) {                                                   \
        GATED((uintptr_t)exec, s, per_thread, REAL(cuGraphLaunch##suffix)(exec, s));                                 \
    }                                                                                                                \
    CUresult cuMemcpyHtoDAsync_v2##suffix(CUdeviceptr to, const void *from, size_t bytes, CUstream s) {              \
        GATED(copy_kind(COPY_TO, bytes), s, per_thread, REAL(cuMemcpyHtoDAsync_v2##suffix)(to, from, bytes, s));     \
    }                                                                                                                \
    CUresult cuMemcpyDtoHAsync_v2##suffix(void *to, CUdeviceptr from, size_t bytes, CUstream s) {                    \
        GATED(copy_kind(COPY_FROM, bytes), s, per_thread, REAL(cuMemcpyDtoHAsync_v2##suffix)(to, from, bytes, s));   \
    }                                                                                                                \
    CUresult cuMemcpyDtoDAsync_v2##suffix(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s) {              \
        GATED(copy_kind(COPY_ON, bytes), s, per_thread, REAL(cuMemcpyDtoDAsync_v2##suffix)(to, from, bytes, s));     \
    }                                                                                                                \
    CUresult cuMemcpyAsync##suffix(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s) {                     \
        GATED(copy_kind(COPY_ANY, bytes), s, per_thread, REAL(cuMemcpyAsync##suffix)(to, from, bytes, s));           \
    }                                                                                                                \
    CUresult cuStreamBeginCapture_v2##suffix(CUstream stream, int mode) {                                            \
        CUresult result = REAL(cuStreamBeginCapture_v2##suffix)(stream, mode);                                       \
        if (!result) capture_began();                                                                                \
        return result;                                                                                               \
    }                                                                                                                \
    CUresult cuStreamEndCapture##suffix(CUstream stream, CUgraph *out) {                                             \
        capture_ended();                                                                                             \
        return REAL(cuStreamEndCapture##suffix)(stream, out);                                                        \
    }
WORK(, false)
WORK(_ptsz, true)

/* Copies that the host waits for: in the default stream, whatever that is. */
#define WAITED(kind)                                                                                     \
    CUresult cuMemcpyHtoD_v2##kind(CUdeviceptr to, const void *from, size_t bytes) {                     \
        GATED(copy_kind(COPY_TO, bytes), NULL, false, REAL(cuMemcpyHtoD_v2##kind)(to, from, bytes));     \
    }                                                                                                    \
    CUresult cuMemcpyDtoH_v2##kind(void *to, CUdeviceptr from, size_t bytes) {                           \
        GATED(copy_kind(COPY_FROM, bytes), NULL, false, REAL(cuMemcpyDtoH_v2##kind)(to, from, bytes));   \
    }                                                                                                    \
    CUresult cuMemcpyDtoD_v2##kind(CUdeviceptr to, CUdeviceptr from, size_t bytes) {                     \
        GATED(copy_kind(COPY_ON, bytes), NULL, false, REAL(cuMemcpyDtoD_v2##kind)(to, from, bytes));     \
    }                                                                                                    \
    CUresult cuMemcpy##kind(CUdeviceptr to, CUdeviceptr from, size_t bytes) {                            \
        GATED(copy_kind(COPY_ANY, bytes), NULL, false, REAL(cuMemcpy##kind)(to, from, bytes));           \
    }
WAITED()
WAITED(_ptds)
