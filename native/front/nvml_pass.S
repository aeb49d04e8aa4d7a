/* Calls of NVML that are handed on as they are: one jump. */
#define OWN(name)
#if defined(__x86_64__)
#define PASS(name) .globl name; .type name, @function; name: endbr64; jmp *real_##name(%rip); .size name, .-name;
#elif defined(__aarch64__)
#define PASS(name) .globl name; .type name, %function; name: adrp x16, real_##name; ldr x16, [x16, :lo12:real_##name]; br x16; .size name, .-name;
#endif
        .text
#include "nvml.def"
        .section .note.GNU-stack,"",@progbits
