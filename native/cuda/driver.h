/* What the files of the stub driver share. */
#pragma once
#include "world.h"

struct Context { int device; uint32_t holders; };
extern __thread CUcontext current;
int device_count(void);
/* The card (its number on the machine) of a device (its number in this process). */
int card_of(CUdevice device);
/* The card of the current context, or -1. */
int current_card(void);
/* Take so many bytes of a card for this process, false when they are not there; and give them back. */
bool card_take(int card, uint64_t bytes);
void card_give(int card, uint64_t bytes);
