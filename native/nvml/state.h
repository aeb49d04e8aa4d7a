/* What the stub's cards say: a text file of `key=value` lines that may be replaced at any time. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "types.h"

enum { TEXT = 8192 };

/* Copy the value of a key into `out` (of TEXT bytes); false when there is none. */
bool state_text(const char *key, char *out);
/* The same for `INDEX.NAME`, or plain NAME for index -1. */
bool card_text(int index, const char *name, char *out);
bool card_number(int index, const char *name, double *out);
bool card_integer(int index, const char *name, ull *out);
/* Wait as long as the state says for this call, then return the error that it sets; 0 for none. */
nvmlReturn_t state_trouble(int index, const char *call);
