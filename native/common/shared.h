/* A file that processes share: mapped, made ready once, with a lock that the dead give back. */
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The mutex is of different sizes on different machines; its room is not. */
typedef struct { uint32_t ready, unused; union { pthread_mutex_t mutex; char room[48]; }; } SharedLock;

/* Map a file, which is made where `make` says so. *kept stays open: to close any descriptor of the file would
 * give back the lock by which this process counts as alive. */
static inline void *shared_map(const char *path, size_t size, size_t lock_offset, bool make, int *kept) {
    int fd = open(path, O_RDWR | O_CLOEXEC | (make ? O_CREAT : 0), 0666);
    if (fd < 0) return NULL;
    struct stat about;
    flock(fd, LOCK_EX);
    if (fstat(fd, &about) || (about.st_size < (off_t)size && (!make || ftruncate(fd, (off_t)size)))) {
        close(fd);
        return NULL;
    }
    char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at != MAP_FAILED) {
        SharedLock *lock = (SharedLock *)(at + lock_offset);
        if (!lock->ready) {
            pthread_mutexattr_t kind;
            pthread_mutexattr_init(&kind);
            pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
            pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
            pthread_mutex_init(&lock->mutex, &kind);
            lock->ready = 1;
        }
    }
    flock(fd, LOCK_UN);
    if (at == MAP_FAILED) close(fd);
    else *kept = fd;
    return at == MAP_FAILED ? NULL : at;
}

/* What the lock guards is true between any two stores, so that its holder may die at any time. */
static inline void shared_lock(SharedLock *lock) {
    if (pthread_mutex_lock(&lock->mutex) == EOWNERDEAD) pthread_mutex_consistent(&lock->mutex);
}
static inline void shared_unlock(SharedLock *lock) { pthread_mutex_unlock(&lock->mutex); }

/* A byte of a file that a process locks for as long as it lives: the kernel gives the lock back, in every
 * PID namespace. A process that closes any descriptor of the file loses it, too. */
#ifndef F_OFD_GETLK
#define F_OFD_GETLK 36
#endif
static inline bool life_take(int fd, off_t at) {
    struct flock take = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
    return !fcntl(fd, F_SETLK, &take);
}
/* Who holds it, as this process numbers it: -1 for none, 0 for one that is not seen from here. By a lock
 * of another kind, against which also this process's own counts. */
static inline int life_holder(int fd, off_t at) {
    struct flock ask = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
    if (fcntl(fd, F_OFD_GETLK, &ask) || ask.l_type == F_UNLCK) return -1;
    return ask.l_pid > 0 ? ask.l_pid : 0;
}

/* When a process began, in clock ticks since the boot; 0 when there is no such process, or it ends. */
static inline uint64_t began(int pid) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    if (got <= 0) return 0;
    text[got] = 0;
    char *at = strrchr(text, ')');
    if (!at || at[2] == 'Z' || at[2] == 'X') return 0;
    unsigned long long start = 0;
    unsigned flags = 0;
    enum { EXITING = 4 };
    at++;
    for (int field = 3; field <= 22 && at; field++) {
        at = strchr(at, ' ');
        if (!at) return 0;
        at++;
        if (field == 9) sscanf(at, "%u", &flags);
        if (flags & EXITING) return 0;
        if (field == 22) sscanf(at, "%llu", &start);
    }
    return start;
}
