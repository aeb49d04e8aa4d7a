/* The stub driver's devices: which cards this process sees, and the current context of a thread. */
#define _GNU_SOURCE
#include "devices.h"

#include <stdlib.h>
#include <strings.h>

#include "../nvml/state.h"

static int visible[WORLD_CARDS], visible_count;
__thread CUcontext current;

static int by_uuid(const char *wanted, int cards) {
    char value[TEXT];
    for (int i = 0; i < cards; i++)
        if (card_text(i, "uuid", value) && !strcasecmp(value, wanted)) return i;
    return -1;
}

/* $CUDA_VISIBLE_DEVICES: numbers or UUIDs; the first that does not exist ends the list. */
void devices_see(void) {
    ull count = 0;
    card_integer(-1, "count", &count);
    int cards = count < WORLD_CARDS ? (int)count : WORLD_CARDS;
    const char *given = getenv("CUDA_VISIBLE_DEVICES");
    visible_count = 0;
    if (!given) {
        for (int i = 0; i < cards; i++) visible[visible_count++] = i;
        return;
    }
    char *copy = strdup(given), *rest = NULL;
    for (char *one = strtok_r(copy, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
        int card = strncmp(one, "GPU-", 4) ? atoi(one) : by_uuid(one, cards);
        if (card < 0 || card >= cards || visible_count == WORLD_CARDS) break;
        visible[visible_count++] = card;
    }
    free(copy);
}

int device_count(void) { return visible_count; }
int card_of(CUdevice device) { return device >= 0 && device < visible_count ? visible[device] : -1; }
int current_card(void) { return current ? card_of(current->device) : -1; }
