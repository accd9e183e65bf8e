// Preloaded after the library under test, it makes any program record: its start, its forks and each of its waits is a launch, with SA_TEST_LATE all except the forks. The file SA_TEST_LEDGER
// counts, for all processes of the program together, how many launches began and how many returned.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

int aclrtLaunchKernel(void *func, uint32_t blocks, const void *args, size_t bytes, void *stream);

static struct { _Atomic uint64_t begun, returned; } *ledger;
static __thread int launching;
static int late;

static void launch(void) {
  if (!ledger || launching) return;
  launching = 1;
  atomic_fetch_add(&ledger->begun, 1);
  if (aclrtLaunchKernel(NULL, 1, NULL, 0, NULL)) abort();
  atomic_fetch_add(&ledger->returned, 1);
  launching = 0;
}

__attribute__((constructor)) static void start(void) {
  const char *path = getenv("SA_TEST_LEDGER");
  int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *map = mmap(NULL, sizeof *ledger, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (map == MAP_FAILED) return;
  ledger = map;
  late = getenv("SA_TEST_LATE") != NULL;
  launch();
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

pid_t fork(void) {
  pid_t child = NEXT(fork)();
  if (child >= 0 && !late) launch();
  return child;
}

#define WAIT(name, parameters, arguments) \
  int name parameters {                   \
    launch();                             \
    return NEXT(name) arguments;          \
  }
WAIT(waitpid, (pid_t pid, int *status, int options), (pid, status, options))
WAIT(poll, (struct pollfd *files, nfds_t count, int timeout), (files, count, timeout))
WAIT(epoll_wait, (int epoll, struct epoll_event *events, int most, int timeout), (epoll, events, most, timeout))
WAIT(epoll_pwait, (int epoll, struct epoll_event *events, int most, int timeout, const sigset_t *mask), (epoll, events, most, timeout, mask))
