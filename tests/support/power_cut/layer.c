// Writes down, in order, what a process does to the files below $POWER_ROOT, into the log $POWER_LOG.
// Loaded by LD_PRELOAD. A write to $POWER_ACKS is logged as a promise that was given at that moment.
// Memory mapped files are not seen. The log's records: a JSON line, and the bytes that it counts.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static const char *root, *acks;
static size_t root_length;
static int log_to = -1;

#define REAL(name) ((__typeof__(&name))real(#name))
static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

static void begin(void) __attribute__((constructor));
static void begin(void) {
  if (log_to >= 0 || !getenv("POWER_LOG")) return;
  root = getenv("POWER_ROOT"), acks = getenv("POWER_ACKS");
  root_length = strlen(root);
  log_to = REAL(open)(getenv("POWER_LOG"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static int below(const char *path) {
  return log_to >= 0 && !strncmp(path, root, root_length) &&
         (path[root_length] == '/' || !path[root_length]);
}

// The path of a name relative to a directory's descriptor.
static int resolved(int at, const char *name, char out[PATH_MAX]) {
  if (log_to < 0) return 0;
  if (name[0] == '/') return snprintf(out, PATH_MAX, "%s", name) < PATH_MAX && below(out);
  char base[PATH_MAX], link[64];
  if (at == AT_FDCWD) {
    if (!getcwd(base, sizeof base)) return 0;
  } else {
    snprintf(link, sizeof link, "/proc/self/fd/%d", at);
    ssize_t n = readlink(link, base, sizeof base - 1);
    if (n < 0) return 0;
    base[n] = 0;
  }
  return snprintf(out, PATH_MAX, "%s/%s", base, name) < PATH_MAX && below(out);
}

static int named(int fd, char out[PATH_MAX]) {
  if (log_to < 0 || fd == log_to) return 0;
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, out, PATH_MAX - 1);
  if (n < 0) return 0;
  out[n] = 0;
  return below(out) || (acks && !strcmp(out, acks));
}

static void note(const char *what, const char *path, const char *other, long at, const void *data,
                 size_t size) {
  int kept = errno;
  char head[2 * PATH_MAX + 128];
  int n = snprintf(head, sizeof head, "{\"op\":\"%s\",\"path\":\"%s\",\"to\":\"%s\",\"at\":%ld,\"size\":%zu}\n",
                   what, path, other ? other : "", at, data ? size : 0);
  struct iovec parts[2] = {{head, (size_t)n}, {(void *)data, data ? size : 0}};
  if (REAL(writev)(log_to, parts, 2) < 0) abort();
  errno = kept;
}

static void noted_write(int fd, const void *data, ssize_t size, off_t at) {
  char path[PATH_MAX];
  if (size <= 0 || !named(fd, path)) return;
  if (acks && !strcmp(path, acks)) note("ack", path, 0, 0, data, (size_t)size);
  else note("write", path, 0, at, data, (size_t)size);
}

#define HELD(type, call) \
  pthread_mutex_lock(&lock); \
  type got = (call);
#define DONE \
  pthread_mutex_unlock(&lock); \
  return got;

ssize_t write(int fd, const void *data, size_t size) {
  HELD(ssize_t, REAL(write)(fd, data, size))
  if (got > 0 && log_to >= 0) noted_write(fd, data, got, lseek(fd, 0, SEEK_CUR) - got);
  DONE
}
ssize_t writev(int fd, const struct iovec *parts, int count) {
  HELD(ssize_t, REAL(writev)(fd, parts, count))
  if (got > 0 && log_to >= 0) {
    off_t at = lseek(fd, 0, SEEK_CUR) - got;
    ssize_t left = got;
    for (int i = 0; i < count && left > 0; i++) {
      ssize_t one = (ssize_t)parts[i].iov_len < left ? (ssize_t)parts[i].iov_len : left;
      noted_write(fd, parts[i].iov_base, one, at);
      at += one, left -= one;
    }
  }
  DONE
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
  HELD(ssize_t, REAL(pwrite)(fd, data, size, at))
  noted_write(fd, data, got, at);
  DONE
}
ssize_t pwrite64(int fd, const void *data, size_t size, off_t at) { return pwrite(fd, data, size, at); }

// What the kernel copied is read back.
static void noted_copy(int fd, off_t at, ssize_t size) {
  char path[PATH_MAX];
  if (size <= 0 || !named(fd, path)) return;
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  int again = REAL(open)(link, O_RDONLY | O_CLOEXEC);
  void *data = malloc((size_t)size);
  if (pread(again, data, (size_t)size, at) == size) note("write", path, 0, at, data, (size_t)size);
  free(data);
  close(again);
}
ssize_t sendfile(int out, int in, off_t *offset, size_t size) {
  HELD(ssize_t, REAL(sendfile)(out, in, offset, size))
  if (got > 0 && log_to >= 0) noted_copy(out, lseek(out, 0, SEEK_CUR) - got, got);
  DONE
}
ssize_t sendfile64(int out, int in, off_t *offset, size_t size) { return sendfile(out, in, offset, size); }
ssize_t copy_file_range(int in, off_t *from, int out, off_t *to, size_t size, unsigned flags) {
  HELD(ssize_t, REAL(copy_file_range)(in, from, out, to, size, flags))
  if (got > 0 && log_to >= 0) noted_copy(out, (to ? *to : lseek(out, 0, SEEK_CUR)) - got, got);
  DONE
}

static int opened(int at, const char *name, int flags, mode_t mode) {
  char path[PATH_MAX];
  int ours = resolved(at, name, path);
  HELD(int, REAL(openat)(at, name, flags, mode))
  if (got >= 0 && ours && (flags & (O_CREAT | O_TRUNC)) && !(flags & O_DIRECTORY))
    note("open", path, flags & O_TRUNC ? "empty" : "", 0, 0, 0);
  DONE
}
#define MODE \
  mode_t mode = 0; \
  if (flags & (O_CREAT | O_TMPFILE)) { \
    va_list rest; \
    va_start(rest, flags); \
    mode = va_arg(rest, mode_t); \
    va_end(rest); \
  }
int open(const char *name, int flags, ...) { MODE return opened(AT_FDCWD, name, flags, mode); }
int open64(const char *name, int flags, ...) { MODE return opened(AT_FDCWD, name, flags, mode); }
int openat(int at, const char *name, int flags, ...) { MODE return opened(at, name, flags, mode); }
int openat64(int at, const char *name, int flags, ...) { MODE return opened(at, name, flags, mode); }

static int cut(int fd, off_t size, int got) {
  char path[PATH_MAX];
  if (!got && named(fd, path)) note("truncate", path, 0, size, 0, 0);
  return got;
}
int ftruncate(int fd, off_t size) {
  HELD(int, cut(fd, size, REAL(ftruncate)(fd, size)))
  DONE
}
int ftruncate64(int fd, off_t size) { return ftruncate(fd, size); }

static int settled(int fd, int got) {
  char path[PATH_MAX];
  if (!got && named(fd, path)) note("sync", path, 0, 0, 0, 0);
  return got;
}
int fsync(int fd) {
  HELD(int, settled(fd, 0))
  DONE
}
int fdatasync(int fd) { return fsync(fd); }
int syncfs(int fd) {
  char path[PATH_MAX];
  HELD(int, 0)
  if (named(fd, path)) note("sync all", path, 0, 0, 0, 0);
  DONE
}

static int two(const char *what, int at, const char *name, int to, const char *other, int got) {
  char path[PATH_MAX], target[PATH_MAX];
  if (!got && resolved(at, name, path) | resolved(to, other, target)) note(what, path, target, 0, 0, 0);
  return got;
}
static int one(const char *what, int at, const char *name, int got) {
  char path[PATH_MAX];
  if (!got && resolved(at, name, path)) note(what, path, 0, 0, 0, 0);
  return got;
}
int renameat(int at, const char *name, int to, const char *other) {
  HELD(int, two("rename", at, name, to, other, REAL(renameat)(at, name, to, other)))
  DONE
}
int rename(const char *name, const char *other) { return renameat(AT_FDCWD, name, AT_FDCWD, other); }
int linkat(int at, const char *name, int to, const char *other, int flags) {
  HELD(int, two("link", at, name, to, other, REAL(linkat)(at, name, to, other, flags)))
  DONE
}
int link(const char *name, const char *other) { return linkat(AT_FDCWD, name, AT_FDCWD, other, 0); }
int unlinkat(int at, const char *name, int flags) {
  HELD(int, one(flags & AT_REMOVEDIR ? "rmdir" : "unlink", at, name, REAL(unlinkat)(at, name, flags)))
  DONE
}
int unlink(const char *name) { return unlinkat(AT_FDCWD, name, 0); }
int rmdir(const char *name) { return unlinkat(AT_FDCWD, name, AT_REMOVEDIR); }
int mkdirat(int at, const char *name, mode_t mode) {
  HELD(int, one("mkdir", at, name, REAL(mkdirat)(at, name, mode)))
  DONE
}
int mkdir(const char *name, mode_t mode) { return mkdirat(AT_FDCWD, name, mode); }
int symlinkat(const char *target, int at, const char *name) {
  int got = REAL(symlinkat)(target, at, name);
  char path[PATH_MAX];
  if (!got && resolved(at, name, path)) note("symlink", path, target, 0, 0, 0);
  return got;
}
int symlink(const char *target, const char *name) { return symlinkat(target, AT_FDCWD, name); }
