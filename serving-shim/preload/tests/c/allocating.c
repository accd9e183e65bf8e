// A thread allocates all the time while the first launches are made.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int aclrtLaunchKernel(void *func, uint32_t blocks, const void *args, size_t bytes, void *stream);
int aclrtSynchronizeDevice(void) __attribute__((weak)); // only our library has it

static volatile int done, begun;

static void *allocate(void *nothing) {
  while (!done) {
    begun = 1;
    free(malloc(100));
  }
  return nothing;
}

int main(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, allocate, NULL);
  while (!begun) continue;
  for (int n = 0; n < 3; n++) printf("%d\n", aclrtLaunchKernel(NULL, 1, NULL, 0, NULL));
  printf("%d\n", aclrtSynchronizeDevice());
  printf("%d\n", dlsym(RTLD_DEFAULT, "aclrtSynchronizeDevice") != NULL);
  done = 1;
  pthread_join(thread, NULL);
  return 42;
}
