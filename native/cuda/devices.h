/* Devices of this process, their cards on the machine, and the current context. */
#pragma once
#include "world.h"

/* A context's round changes when it is reset: what was made in it before is dead. */
struct Context { int device; uint32_t holders, round; bool dead; };
extern __thread CUcontext current;
/* Read $CUDA_VISIBLE_DEVICES. */
void devices_see(void);
int device_count(void);
/* The card (its number on the machine) of a device (its number in this process). */
int card_of(CUdevice device);
/* The card of the current context, or -1. */
int current_card(void);
/* Say what a real driver would not survive; tests expect nothing on standard error. */
CUresult misused(const char *what);
/* names.c: a call by what programs ask cuGetProcAddress for; NULL: there is none. */
void *call_by_name(const char *base, int version, uint64_t flags);
