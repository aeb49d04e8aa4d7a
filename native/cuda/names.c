/* The stub driver's calls by name: of those that a name means, the newest that a program's version of
 * CUDA knows. A call that the stub lacks is there, as programs want to find it, and not supported. */
#include <string.h>

#include "devices.h"

static CUresult absent(void) { return CUDA_ERROR_NOT_SUPPORTED; }

#define OWN(name, ...) CUresult name(void) __attribute__((weak, alias("absent")));
#define PASS OWN
#define WORK OWN
#define NAMED(...)
#include "../front/calls.def"
#undef OWN
#undef PASS
#undef NAMED

enum { PER_THREAD = 2 };
typedef struct { const char *base; int version; bool per_thread; CUresult (*call)(void); } Call;
static const Call calls[] = {
#define OWN(name, base, version, per_thread, ...) {#base, version, per_thread, name},
#define PASS OWN
#define NAMED OWN
#include "../front/calls.def"
};

static bool newer(const Call *one, const Call *best) {
    return !best || one->per_thread > best->per_thread || (one->per_thread == best->per_thread && one->version > best->version);
}

void *call_by_name(const char *base, int version, uint64_t flags) {
    const Call *best = NULL;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const Call *one = &calls[i];
        /* Streams of threads are the legacy stream here, where a call has no other form of its own. */
        bool other = one->per_thread && (!(flags & PER_THREAD) || one->call == absent);
        if (!strcmp(one->base, base) && one->version <= version && !other && newer(one, best)) best = one;
    }
    return best ? (void *)best->call : NULL;
}
