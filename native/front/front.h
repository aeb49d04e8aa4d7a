/* What the files of the front share. */
#pragma once
#include "../cuda/types.h"
#include "share.h"

extern Share *share;   /* NULL: no share, and everything passes */
extern uint32_t *bell; /* rung when the agent had better look at once */

/* The real driver's calls, by name; each is found when the library is loaded. */
#define OWN(name) extern void *real_##name;
#define PASS(name) extern void *real_##name;
#include "calls.def"
#undef OWN
#undef PASS
/* The type of a call of ours is that of the real one. */
#define REAL(name) ((__typeof__(&name))real_##name)

uint64_t clock_now(void);
void clock_wait(const uint32_t *word, uint32_t expected, uint64_t until, uint64_t name);
void clock_wake(uint32_t *word, uint64_t name);
extern uint64_t share_name, bell_name;

/* The share's number of the current context's card, or of a device; -1 for none. */
int share_of_context(void);
int share_of_device(CUdevice device);

/* Take bytes of a card for this process, before the driver is asked; false: beyond the limit. */
bool reserve(int card, uint64_t bytes);
void give_back(int card, uint64_t bytes);
uint64_t share_used(int card);

/* Wait until work of this kind may be launched; afterwards say that it was. */
typedef struct { int card; void *measured; uint64_t charged; } Pass;
Pass gate_enter(uint64_t kind, CUstream stream, bool per_thread);
void gate_leave(Pass pass, CUstream stream, bool per_thread, CUresult result);
void capture_began(void);
void capture_ended(void);

CUresult cuInit(unsigned flags);
CUresult cuCtxGetDevice(CUdevice *out);
CUresult cuDeviceGetUuid(CUuuid *out, CUdevice device);
CUresult cuEventCreate(CUevent *out, unsigned flags);
CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventRecord_ptsz(CUevent event, CUstream stream);
CUresult cuEventQuery(CUevent event);
CUresult cuEventSynchronize(CUevent event);
CUresult cuEventElapsedTime(float *out, CUevent from, CUevent to);
CUresult cuStreamIsCapturing(CUstream stream, int *out);
CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t bytes);
CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t count, CUstream stream);
CUresult cuMemsetD8Async_ptsz(CUdeviceptr at, unsigned char value, size_t count, CUstream stream);
CUresult cuCtxGetCurrent(CUcontext *out);
