/* Calls that are handed on as they are: one jump. Also those of ours, under names of their own,
 * are in the table, but defined in C. */
#define OWN(...)
#define WORK(...)
#define NAMED(...)
#if defined(__x86_64__)
#define PASS(name, ...) .globl name; .type name, @function; name: endbr64; jmp *real_##name(%rip); .size name, .-name;
#elif defined(__aarch64__)
#define PASS(name, ...) .globl name; .type name, %function; name: adrp x16, real_##name; ldr x16, [x16, :lo12:real_##name]; br x16; .size name, .-name;
#endif
        .text
#include "calls.def"
        .section .note.GNU-stack,"",@progbits
