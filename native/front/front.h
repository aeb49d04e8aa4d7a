/* What the files of the front share. */
#pragma once
#include "../cuda/types.h"
#include "share.h"

extern const Granted *granted; /* NULL: no share, and everything passes */
extern Account *account;       /* there where granted is */
extern int account_file;

/* The real driver's calls, by name; each is found when the library is loaded. */
#define OWN(name, ...) extern void *real_##name;
#define PASS(name, ...) extern void *real_##name;
#define WORK(name, ...) extern void *real_##name;
#define NAMED(...)
#include "calls.def"
#undef OWN
#undef PASS
#undef WORK
#undef NAMED
/* The type of a call of ours is that of the real one. */
#define REAL(name) ((__typeof__(&name))real_##name)

uint64_t clock_now(void);
void clock_wait(const uint32_t *word, uint32_t expected, uint64_t until, uint64_t name);
void clock_wake(uint32_t *word, uint64_t name);
void clock_join(void);
void clock_leave(void);
extern uint64_t share_name;
void ring(void);

/* The share's number of the current context's card, or of a device; -1 for none. */
int share_of_context(void);
void devices_see_share(void);
int share_of_device(CUdevice device);
CUcontext context_now(void);

/* account.c: this process in the account; NULL where all slots are taken by living processes. */
ShareSlot *my_slot(void);
/* Take bytes of a card for this process, before the driver is asked; false: beyond the limit. */
bool reserve(int card, uint64_t bytes);
void give_back(int card, uint64_t bytes);
uint64_t share_used(int card);

/* memory.c: what is held; a context that ends takes what was allocated in it along. */
enum { PLAIN, ARRAY, HANDLE, EXEC };
void note(int kind, uint64_t at, uint64_t bytes, int card, CUcontext context);
void forget(int kind, uint64_t at);
void forget_context(CUcontext context);

/* gate.c: wait until work may be launched. */
/* Whether work is over when its call comes back. */
typedef enum { LATER, PERHAPS, OVER } Waits;
typedef struct { int card; bool taken; Waits waits; uint64_t kind, at; CUcontext context; } Pass;
Pass gate_enter(uint64_t kind, CUstream stream, bool per_thread, Waits waits);
void gate_leave(Pass pass, CUstream stream, bool per_thread, CUresult result);
void capture_began(void);
void capture_ended(void);
bool capturing(CUstream stream, bool per_thread);

/* meter.c, room.c: work in flight, measured when it is complete by a thread of its own. */
void meter_began(Pass *pass, CUstream stream, bool per_thread);
void meter_launched(const Pass *pass, CUstream stream, bool per_thread, bool well);
void meter_settle(CUstream stream, bool per_thread);
void meter_forget_stream(CUstream stream);
void meter_forget_context(CUcontext context);
/* When more work of this card may be launched, by what is in flight: now, or when to look again. It
 * should begin before `until`. */
uint64_t meter_room(const Pass *pass, CUstream stream, bool per_thread, uint64_t now, uint64_t until);
/* Whether work may pass the gate because what runs may wait for it. */
bool meter_dependent(const Pass *pass, CUstream stream, bool per_thread, bool leased, uint64_t now, uint64_t *look_again);
extern uint32_t meter_word; /* changes when work is complete */
uint64_t meter_name(void);

/* What of CUDA's interface the front calls or answers in more than one file. */
CUresult cuInit(unsigned flags);
CUresult cuCtxGetDevice(CUdevice *out), cuCtxGetCurrent(CUcontext *out), cuCtxSetCurrent(CUcontext context);
CUresult cuDeviceGetUuid(CUuuid *out, CUdevice device);
CUresult cuEventCreate(CUevent *out, unsigned flags), cuEventDestroy_v2(CUevent event);
CUresult cuEventRecord(CUevent event, CUstream stream), cuEventRecord_ptsz(CUevent event, CUstream stream);
CUresult cuEventQuery(CUevent event), cuEventElapsedTime(float *out, CUevent from, CUevent to);
CUresult cuStreamIsCapturing(CUstream stream, int *out), cuStreamIsCapturing_ptsz(CUstream stream, int *out);
CUresult cuThreadExchangeStreamCaptureMode(int *mode);
