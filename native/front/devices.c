/* Which of the share's cards a device of CUDA is: its UUID tells. */
#include <stdlib.h>
#include <strings.h>

#include "front.h"

enum { DEVICES = 64, NOT_ASKED = -2 };
static int cards[DEVICES] = {[0 ... DEVICES - 1] = NOT_ASKED};

int share_of_device(CUdevice device) {
    if (!share || device < 0 || device >= DEVICES) return -1;
    int found = __atomic_load_n(&cards[device], __ATOMIC_RELAXED);
    if (found != NOT_ASKED) return found;
    CUuuid id;
    if (REAL(cuDeviceGetUuid)(&id, device)) return -1;
    char text[48];
    const unsigned char *b = id.bytes;
    snprintf(text, sizeof text, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
             b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
    found = -1;
    for (uint32_t i = 0; i < share->cards && i < SHARE_CARDS; i++)
        if (!strncasecmp(share->card[i].uuid, text, sizeof share->card[i].uuid)) found = (int)i;
    __atomic_store_n(&cards[device], found, __ATOMIC_RELAXED);
    return found;
}

int share_of_context(void) {
    CUdevice device;
    if (!share || REAL(cuCtxGetDevice)(&device)) return -1;
    return share_of_device(device);
}
