// Replaces the functions that return the status of a file with some that crash once the destructor of this library has run, as libfaketime does.
#define _GNU_SOURCE
#define fstat64 hidden_fstat64
#define stat64 hidden_stat64
#define lstat64 hidden_lstat64
#define fstatat64 hidden_fstatat64
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#undef fstat64
#undef stat64
#undef lstat64
#undef fstatat64

static int has_ended;

__attribute__((destructor)) static void end(void) { has_ended = 1; }

static int status(int dir, const char *path, struct stat *stat, int flags) {
  if (has_ended)
    __builtin_trap();
  return (int)syscall(SYS_newfstatat, dir, path, stat, flags);
}

int fstat(int fd, struct stat *stat) { return status(fd, "", stat, AT_EMPTY_PATH); }
int stat(const char *path, struct stat *found) { return status(AT_FDCWD, path, found, 0); }
int lstat(const char *path, struct stat *stat) { return status(AT_FDCWD, path, stat, AT_SYMLINK_NOFOLLOW); }
int fstatat(int dir, const char *path, struct stat *stat, int flags) { return status(dir, path, stat, flags); }

// The names that programs with 64-bit file sizes use.
int fstat64(int fd, struct stat *stat) { return status(fd, "", stat, AT_EMPTY_PATH); }
int stat64(const char *path, struct stat *found) { return status(AT_FDCWD, path, found, 0); }
int lstat64(const char *path, struct stat *stat) { return status(AT_FDCWD, path, stat, AT_SYMLINK_NOFOLLOW); }
int fstatat64(int dir, const char *path, struct stat *stat, int flags) { return status(dir, path, stat, flags); }
