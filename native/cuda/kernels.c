/* The stub driver's kernels last as long as their names say, copies and memsets as their bytes take.
 *
 *   busy_5us, busy_200ms     always so long
 *   vary_133us_3600us        three launches of the first, then one of the second, and so on
 *   draw_5us_200ms           drawn between both, the small ones more often, by $LOCKSTEP_CUDA_SEED
 *   spin_3, flag_3           the one spins until the other runs
 *   meet_8_1ms               a collective of eight ranks: on each card it spins until the last rank's
 *                            has begun. Here the host spins instead, in the call.
 *                            $LOCKSTEP_CUDA_GROUP is the number of the ranks' group. */
#include <math.h>
#include <stdlib.h>

#include "streams.h"

struct Module { int unused; };
enum { BUSY, VARY, DRAW, SPIN, FLAG, MEET };
struct Function { int how; uint64_t least, most, launches, seed; uint32_t ranks; struct Function *next; char name[64]; };

static struct Function *functions;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t in_unit(unsigned long long count, const char *unit) {
    return count * (!strcmp(unit, "ns") ? 1 : !strcmp(unit, "us") ? 1000 : !strcmp(unit, "ms") ? 1000000 : 0);
}

static bool parsed(const char *name, struct Function *out) {
    unsigned long long a = 0, b = 0;
    char one[4] = "", other[4] = "";
    unsigned number = 0;
    if (sscanf(name, "busy_%llu%3s", &a, one) == 2) out->how = BUSY;
    else if (sscanf(name, "vary_%llu%2[a-z]_%llu%3s", &a, one, &b, other) == 4) out->how = VARY;
    else if (sscanf(name, "draw_%llu%2[a-z]_%llu%3s", &a, one, &b, other) == 4) out->how = DRAW;
    else if (sscanf(name, "meet_%u_%llu%3s", &number, &a, one) == 3) out->how = MEET;
    else if (sscanf(name, "spin_%u", &number) == 1 && number < FLAGS) out->how = SPIN;
    else if (sscanf(name, "flag_%u", &number) == 1 && number < FLAGS) out->how = FLAG;
    else return false;
    out->least = in_unit(a, one);
    out->most = in_unit(b, other);
    out->ranks = number;
    const char *seed = getenv("LOCKSTEP_CUDA_SEED");
    out->seed = 88172645463325252ULL ^ (seed ? strtoull(seed, NULL, 10) * 0x9E3779B97F4A7C15ULL : 0);
    return out->least || out->how == SPIN || out->how == FLAG;
}

static uint64_t length_of(struct Function *f) {
    pthread_mutex_lock(&lock);
    uint64_t turn = f->launches++, length = f->least;
    if (f->how == VARY && turn % 4 == 3) length = f->most;
    if (f->how == DRAW) {
        f->seed ^= f->seed << 13;
        f->seed ^= f->seed >> 7;
        f->seed ^= f->seed << 17;
        double part = (double)(f->seed % 1000000) / 1e6;
        length = (uint64_t)((double)f->least * pow((double)f->most / (double)f->least, part));
    }
    pthread_mutex_unlock(&lock);
    return length;
}

CUresult cuModuleLoadData(CUmodule *out, const void *image) {
    (void)image;
    *out = calloc(1, sizeof **out);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuModuleUnload(CUmodule module) { free(module); return CUDA_SUCCESS; }
CUresult cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name) {
    struct Function found = {0};
    (void)module;
    if (!parsed(name, &found)) return CUDA_ERROR_NOT_FOUND;
    pthread_mutex_lock(&lock);
    struct Function *one = functions;
    while (one && strcmp(one->name, name)) one = one->next;
    if (!one && (one = calloc(1, sizeof *one))) {
        *one = found;
        snprintf(one->name, sizeof one->name, "%s", name);
        one->next = functions;
        functions = one;
    }
    pthread_mutex_unlock(&lock);
    *out = one;
    return one ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult launch(CUfunction f, CUstream given) {
    if (!f) return CUDA_ERROR_INVALID_HANDLE;
    struct Stream *stream = stream_of(given);
    if (!stream) return CUDA_ERROR_INVALID_CONTEXT;
    if (f->how == SPIN && !stream->captured) {
        stream->when = (When){0, 0, (int)f->ranks};
        return CUDA_SUCCESS;
    }
    if (f->how == FLAG && !stream->captured) {
        CUresult result = work(given, 1000);
        uint64_t at = stream->when.flag < 0 ? stream->when.end : 0;
        if (at) __atomic_store_n(&flag_set[f->ranks], at, __ATOMIC_RELEASE);
        return result;
    }
    return work_of(given, f->how == FLAG || f->how == SPIN ? 1000 : length_of(f), f->how == MEET ? f->ranks : 0);
}

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, CUstream stream, void **parameters, void **extra) {
    (void)shared, (void)parameters, (void)extra;
    if (!gx || !gy || !gz || !bx || !by || !bz) return CUDA_ERROR_INVALID_VALUE;
    return launch(f, stream);
}
CUresult cuLaunchKernelEx(const CUlaunchConfig *how, CUfunction f, void **parameters, void **extra) {
    (void)parameters, (void)extra;
    return launch(f, how->stream);
}
CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                   unsigned by, unsigned bz, unsigned shared, CUstream stream, void **parameters) {
    return cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, stream, parameters, NULL);
}
CUresult cuGraphAddKernelNode_v2(CUgraphNode *out, CUgraph graph, const CUgraphNode *after, size_t count,
                                 const CUkernelNode *how) {
    (void)after, (void)count;
    CUgraphNode made = graph_add(graph, (Step){.nanoseconds = length_of(how->function)});
    if (out) *out = made;
    return CUDA_SUCCESS;
}

/* --- copies: 25 GB/s to and from the host, 2 TB/s on the card --- */

/* Memory of this stub lies nowhere; host memory is not touched, either. */
#define COPY(name, rate, parameters, bytes)                                                        \
    CUresult name##Async_v2 parameters;                                                            \
    CUresult name##Async_v2 parameters { return (void)to, (void)from, work(stream, (bytes) / (rate)); }
COPY(cuMemcpyHtoD, 25, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream), bytes)
COPY(cuMemcpyDtoH, 25, (void *to, CUdeviceptr from, size_t bytes, CUstream stream), bytes)
COPY(cuMemcpyDtoD, 2000, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream), bytes)
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return cuMemcpyDtoDAsync_v2(to, from, bytes, stream);
}
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext there, CUdeviceptr from, CUcontext here, size_t bytes, CUstream stream) {
    (void)there, (void)here;
    return cuMemcpyDtoDAsync_v2(to, from, bytes, stream);
}

static CUresult waited(CUresult result) {
    if (!result) wait_for(&stream_of(NULL)->when);
    return result;
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes) {
    return waited(cuMemcpyHtoDAsync_v2(to, from, bytes, NULL));
}
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) {
    return waited(cuMemcpyDtoHAsync_v2(to, from, bytes, NULL));
}

/* Of shapes, the last two numbers are width in bytes and height. */
typedef struct { size_t unused[14], width, height; } Flat;
typedef struct { size_t unused[22], width, height, depth; } Deep;
CUresult cuMemcpy2DAsync_v2(const Flat *how, CUstream stream) { return work(stream, how->width * how->height / 2000); }
CUresult cuMemcpy2D_v2(const Flat *how) { return waited(cuMemcpy2DAsync_v2(how, NULL)); }
CUresult cuMemcpy3DAsync_v2(const Deep *how, CUstream stream) {
    return work(stream, how->width * how->height * how->depth / 2000);
}
CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t count, void *how, size_t *which,
                               size_t ways, CUstream stream) {
    size_t bytes = 0;
    (void)to, (void)from, (void)how, (void)which, (void)ways;
    for (size_t i = 0; i < count; i++) bytes += sizes[i];
    return work(stream, bytes / 2000);
}
CUresult cuMemPrefetchAsync_v2(CUdeviceptr at, size_t bytes, CUlocation to, unsigned flags, CUstream stream) {
    (void)at, (void)to, (void)flags;
    return work(stream, bytes / 25);
}
CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t bytes, CUstream stream) {
    (void)at, (void)value;
    return work(stream, 1000 + bytes / 2000);
}
CUresult cuMemsetD8_v2(CUdeviceptr at, unsigned char value, size_t bytes) { return cuMemsetD8Async(at, value, bytes, NULL); }
CUresult cuMemsetD32Async(CUdeviceptr at, unsigned value, size_t count, CUstream stream) {
    (void)at, (void)value;
    return work(stream, 1000 + 4 * count / 2000);
}
CUresult cuMemsetD2D8Async(CUdeviceptr at, size_t pitch, unsigned char value, size_t width, size_t height, CUstream stream) {
    (void)at, (void)pitch, (void)value;
    return work(stream, 1000 + width * height / 2000);
}
