/* Which of the share's cards a device of CUDA is: its UUID tells. */
#include <stdlib.h>
#include <strings.h>

#include "front.h"

enum { DEVICES = 64, NOT_ASKED = -2 };
static int cards[DEVICES] = {[0 ... DEVICES - 1] = NOT_ASKED};

/* The place in the share of what a program calls a card: a number, or the beginning of a UUID. */
static int place_of(const char *name) {
    char *end;
    long number = strtol(name, &end, 10);
    if (end != name && !*end) return number >= 0 && number < (long)granted->cards ? (int)number : -1;
    for (uint32_t i = 0; i < granted->cards && strlen(name) > strlen("GPU-"); i++)
        if (!strncasecmp(granted->card[i].uuid, name, strlen(name))) return (int)i;
    return -1;
}

/* Let the driver see the share's cards alone. Numbers in $CUDA_VISIBLE_DEVICES count within them, as
 * in a container that has no others; as with the driver, what is not there ends the list. */
void devices_see_share(void) {
    char kept[SHARE_CARDS * sizeof granted->card[0].uuid] = "", all[64] = "";
    const char *given = getenv("CUDA_VISIBLE_DEVICES");
    for (uint32_t i = 0; i < granted->cards && i < SHARE_CARDS && !given; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%u", i ? "," : "", i);
    char *list = strdup(given ? given : all), *rest = NULL;
    int count = 0;
    for (char *one = list ? strtok_r(list, ", ", &rest) : NULL; one && count < SHARE_CARDS; one = strtok_r(NULL, ", ", &rest)) {
        int place = place_of(one);
        if (place < 0) break;
        const char *uuid = granted->card[place].uuid;
        snprintf(kept + strlen(kept), sizeof kept - strlen(kept), "%s%.*s", count++ ? "," : "", (int)sizeof granted->card[0].uuid - 1, uuid);
    }
    free(list);
    setenv("CUDA_VISIBLE_DEVICES", kept, 1);
}

int share_of_device(CUdevice device) {
    if (!granted || device < 0 || device >= DEVICES) return -1;
    int found = __atomic_load_n(&cards[device], __ATOMIC_RELAXED);
    if (found != NOT_ASKED) return found;
    CUuuid id;
    if (REAL(cuDeviceGetUuid)(&id, device)) return -1;
    char text[48];
    const unsigned char *b = id.bytes;
    snprintf(text, sizeof text, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
             b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
    found = -1;
    for (uint32_t i = 0; i < granted->cards && i < SHARE_CARDS; i++)
        if (!strncasecmp(granted->card[i].uuid, text, sizeof granted->card[i].uuid)) found = (int)i;
    __atomic_store_n(&cards[device], found, __ATOMIC_RELAXED);
    return found;
}

int share_of_context(void) {
    CUdevice device;
    if (!granted || REAL(cuCtxGetDevice)(&device)) return -1;
    return share_of_device(device);
}

CUcontext context_now(void) {
    CUcontext found = NULL;
    return REAL(cuCtxGetCurrent)(&found) ? NULL : found;
}
