/* Every way to give the card work, through the gate; captures, and calls that wait for work. */
#include "front.h"

/* Calls of like size take alike. */
static inline uint64_t size_key(uint64_t call, uint64_t bytes) { return call | (uint64_t)(64 - __builtin_clzll(bytes | 1)); }

/* A copy to or from the host's memory is over then; the shapes say from where it is, and where to. */
static inline Waits waits_by(const void *shape, size_t from, size_t to) {
    enum { HOST = 1 };
    const char *at = shape;
    bool host = *(const unsigned *)(at + from) == HOST || *(const unsigned *)(at + to) == HOST;
    return host ? OVER : PERHAPS;
}

#define OWN(...)
#define PASS(...)
#define NAMED(...)
#define WORK(name, base, version, per_thread, parameters, arguments, stream, kind, waits) \
    CUresult name parameters;                                                             \
    CUresult name parameters {                                                            \
        if (!granted) return REAL(name) arguments;                                        \
        CUstream in = (CUstream)(stream);                                                 \
        Pass pass = gate_enter(kind, in, per_thread, waits);                              \
        CUresult result = REAL(name) arguments;                                           \
        gate_leave(pass, in, per_thread, result);                                         \
        return result;                                                                    \
    }
#include "calls.def"

/* --- captures --- */

/* Counted before they begin, so that no launch meets one unawares. */
#define CAPTURED(call_)                \
    do {                               \
        capture_began();               \
        CUresult result = call_;       \
        if (result) capture_ended();   \
        return result;                 \
    } while (0)
#define CAPTURES(suffix)                                                                                          \
    CUresult cuStreamBeginCapture##suffix(CUstream stream) { CAPTURED(REAL(cuStreamBeginCapture##suffix)(stream)); } \
    CUresult cuStreamBeginCapture_v2##suffix(CUstream stream, int mode) {                                         \
        CAPTURED(REAL(cuStreamBeginCapture_v2##suffix)(stream, mode));                                            \
    }                                                                                                             \
    CUresult cuStreamBeginCaptureToGraph##suffix(CUstream stream, CUgraph graph, const void *after,               \
                                                 const void *edges, size_t count, int mode) {                     \
        CAPTURED(REAL(cuStreamBeginCaptureToGraph##suffix)(stream, graph, after, edges, count, mode));            \
    }                                                                                                             \
    CUresult cuStreamBeginRecaptureToGraph##suffix(CUstream stream, int mode, CUgraph graph, void *call, void *with) { \
        CAPTURED(REAL(cuStreamBeginRecaptureToGraph##suffix)(stream, mode, graph, call, with));                   \
    }                                                                                                             \
    CUresult cuStreamBeginCaptureToCig##suffix(CUstream stream, void *how) {                                      \
        CAPTURED(REAL(cuStreamBeginCaptureToCig##suffix)(stream, how));                                           \
    }                                                                                                             \
    CUresult cuStreamEndCaptureToCig##suffix(CUstream stream) {                                                   \
        CUresult result = REAL(cuStreamEndCaptureToCig##suffix)(stream);                                          \
        capture_ended();                                                                                          \
        return result;                                                                                            \
    }                                                                                                             \
    CUresult cuStreamEndCapture##suffix(CUstream stream, CUgraph *out) {                                          \
        CUresult result = REAL(cuStreamEndCapture##suffix)(stream, out);                                          \
        capture_ended();                                                                                          \
        return result;                                                                                            \
    }
CAPTURES()
CAPTURES(_ptsz)

/* --- before the host waits, or lets another stream wait --- */

#define WAITS(suffix, per_thread)                                                                \
    CUresult cuStreamSynchronize##suffix(CUstream stream) {                                      \
        meter_settle(stream, per_thread);                                                        \
        return REAL(cuStreamSynchronize##suffix)(stream);                                        \
    }                                                                                            \
    CUresult cuStreamQuery##suffix(CUstream stream) {                                            \
        meter_settle(stream, per_thread);                                                        \
        return REAL(cuStreamQuery##suffix)(stream);                                              \
    }                                                                                            \
    CUresult cuEventRecord##suffix(CUevent event, CUstream stream) {                             \
        meter_settle(stream, per_thread);                                                        \
        return REAL(cuEventRecord##suffix)(event, stream);                                       \
    }                                                                                            \
    CUresult cuEventRecordWithFlags##suffix(CUevent event, CUstream stream, unsigned flags) {    \
        meter_settle(stream, per_thread);                                                        \
        return REAL(cuEventRecordWithFlags##suffix)(event, stream, flags);                       \
    }
WAITS(, false)
WAITS(_ptsz, true)

CUresult cuStreamDestroy(CUstream stream) {
    if (granted) meter_forget_stream(stream);
    return REAL(cuStreamDestroy)(stream);
}
CUresult cuStreamDestroy_v2(CUstream stream) {
    if (granted) meter_forget_stream(stream);
    return REAL(cuStreamDestroy_v2)(stream);
}
