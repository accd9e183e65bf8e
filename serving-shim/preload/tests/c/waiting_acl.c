// A vendor library that is loaded for its timing, and whose constructor waits for a thread that launches.
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

int aclrtLaunchKernel(void *func, uint32_t blocks, const void *args, size_t bytes, void *stream);

static void *launch(void *nothing) {
  for (int n = 0; n < 3; n++) aclrtLaunchKernel(NULL, 1, NULL, 0, NULL);
  return nothing;
}

__attribute__((constructor)) static void start(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, launch, NULL);
  pthread_join(thread, NULL);
}
