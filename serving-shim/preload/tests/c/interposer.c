// Another interposer, used before and after ours: it counts the calls and forwards them.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

int aclrtLaunchKernel(void *func, uint32_t blocks, const void *args, size_t bytes, void *stream) {
  int (*next)(void *, uint32_t, const void *, size_t, void *) = dlsym(RTLD_NEXT, "aclrtLaunchKernel");
  printf("interposer before %u\n", blocks);
  int result = next(func, blocks, args, bytes, stream);
  printf("interposer after %d\n", result);
  return result;
}

int aclrtSynchronizeDevice(void) {
  int (*next)(void) = dlsym(RTLD_NEXT, "aclrtSynchronizeDevice");
  printf("interposer waits\n");
  return next();
}
