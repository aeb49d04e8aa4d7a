/* Memory of cards, counted by process. */
#pragma once
#include "devices.h"

/* Take so many bytes of a card for this process, false when they are not there; and give them back. */
bool card_take(int card, uint64_t bytes);
void card_give(int card, uint64_t bytes);
/* What was allocated in a context goes with it. */
void memory_end(CUcontext context);
