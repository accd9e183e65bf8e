// Replaces the functions that return the status of a file with some that crash once the destructor of this library has run, as libfaketime does.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int has_ended;

__attribute__((destructor)) static void end(void) { has_ended = 1; }

int fstatat(int dir, const char *path, void *stat, int flags) {
  if (has_ended) __builtin_trap();
  return (int)syscall(SYS_newfstatat, dir, path, stat, flags);
}
int fstat(int fd, void *stat) { return fstatat(fd, "", stat, AT_EMPTY_PATH); }
int stat(const char *path, void *found) { return fstatat(AT_FDCWD, path, found, 0); }
int lstat(const char *path, void *stat) { return fstatat(AT_FDCWD, path, stat, AT_SYMLINK_NOFOLLOW); }

// The names that programs with 64-bit file sizes use.
int fstat64(int fd, void *stat) __attribute__((alias("fstat")));
int stat64(const char *path, void *found) __attribute__((alias("stat")));
int lstat64(const char *path, void *stat) __attribute__((alias("lstat")));
int fstatat64(int dir, const char *path, void *stat, int flags) __attribute__((alias("fstatat")));
