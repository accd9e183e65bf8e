// An allocator that walks over the loaded objects while it holds its lock, like profiling allocators, which unwind the stack.
#define _GNU_SOURCE
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

extern void *__libc_malloc(size_t);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int inside __attribute__((tls_model("initial-exec")));

static int nothing(struct dl_phdr_info *info, size_t bytes, void *data) { return 1; }

void *malloc(size_t bytes) {
  if (inside) return __libc_malloc(bytes);
  inside = 1;
  pthread_mutex_lock(&lock);
  struct timespec moment = {0, 200000};
  nanosleep(&moment, NULL);
  dl_iterate_phdr(nothing, NULL);
  void *memory = __libc_malloc(bytes);
  pthread_mutex_unlock(&lock);
  inside = 0;
  return memory;
}
