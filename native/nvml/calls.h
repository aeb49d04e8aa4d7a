/* What the two files of calls share. */
#pragma once
#include <strings.h>

#include "types.h"

enum { MOST_CARDS = 64, MOST_SLICES = 8 };

/* A card, or one of its MIG devices; its values are at INDEX.PREFIX... in the state. */
struct Device { int index, slice; char prefix[16]; };

nvmlReturn_t check(Device *device, const char *call);
nvmlReturn_t get_number(Device *device, const char *call, const char *name, ull *out);
Device *slice_of(int index, int number);
int card_count(void);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, Device **out);
