// Makes system calls fail. FAULT is "<call> <number> <kind>"; the kind is "short" or an errno. All
// calls from that number on fail, but with EINTR only every other one, because otherwise the
// program would retry forever. "mmap <number> cut" empties the file that this single call maps.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#define SHORT (-1)
#define CUT (-2)

static char call_name[32];
static long first;
static int what;
static atomic_long calls;

__attribute__((constructor)) static void begin(void)
{
    const char *fault = getenv("FAULT");
    char kind[32] = "0";
    if (fault && sscanf(fault, "%31s %ld %31s", call_name, &first, kind) == 3)
        what = strcmp(kind, "short") == 0 ? SHORT : strcmp(kind, "cut") == 0 ? CUT : atoi(kind);
}

// Returns 0 if this call must succeed.
static int fault_of(const char *name, int fd)
{
    if (fd < 3 || strcmp(name, call_name) != 0)
        return 0;
    long number = atomic_fetch_add(&calls, 1) + 1;
    if (number < first || (what == CUT && number > first) || (what == EINTR && number % 2 == 0))
        return 0;
    return what;
}

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

#define FAIL(name, fd, length) \
    REAL(name); \
    int fault = fault_of(#name, fd); \
    if (fault > 0) { errno = fault; return -1; } \
    if (fault == SHORT && length > 1) length = length / 2

#define CALL(type, name, parameters, arguments) \
    type name parameters \
    { \
        FAIL(name, fd, length); \
        return real arguments; \
    }

CALL(ssize_t, read, (int fd, void *to, size_t length), (fd, to, length))
CALL(ssize_t, write, (int fd, const void *from, size_t length), (fd, from, length))
CALL(ssize_t, pread64, (int fd, void *to, size_t length, off64_t at), (fd, to, length, at))
CALL(ssize_t, pwrite64, (int fd, const void *from, size_t length, off64_t at), (fd, from, length, at))

int fsync(int fd)
{
    size_t length = 0;
    FAIL(fsync, fd, length);
    return real(fd);
}

int fchmod(int fd, mode_t mode)
{
    size_t length = 0;
    FAIL(fchmod, fd, length);
    return real(fd, mode);
}

static void *mapped(void *(*real)(void *, size_t, int, int, int, off64_t), void *at, size_t length, int protection, int flags, int fd, off64_t from)
{
    int fault = fault_of("mmap", fd);
    if (fault > 0) {
        errno = fault;
        return MAP_FAILED;
    }
    void *map = real(at, length, protection, flags, fd, from);
    if (fault == CUT) {
        char path[64];
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        close(open(path, O_WRONLY | O_TRUNC));
    }
    return map;
}

void *mmap64(void *at, size_t length, int protection, int flags, int fd, off64_t from)
{
    REAL(mmap64);
    return mapped((void *(*)(void *, size_t, int, int, int, off64_t))real, at, length, protection, flags, fd, from);
}

void *mmap(void *at, size_t length, int protection, int flags, int fd, off_t from)
{
    REAL(mmap);
    return mapped((void *(*)(void *, size_t, int, int, int, off64_t))real, at, length, protection, flags, fd, from);
}
