// Asks two libraries for functions by their handles, and says what it got: the vendor's, another one's with the same names, and names that are nowhere.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int launch(void *func, uint32_t blocks, const void *args, size_t bytes, void *stream);

static const char *owner(void *address) {
  Dl_info info;
  if (!address || !dladdr(address, &info)) return "nobody";
  const char *slash = strrchr(info.dli_fname, '/');
  return slash ? slash + 1 : info.dli_fname;
}

int main(int argc, char **argv) {
  (void)argc;
  void *vendor = dlopen(argv[1], RTLD_LAZY), *other = dlopen(argv[2], RTLD_LAZY);
  if (!vendor || !other) return 99;
  void *first = dlsym(vendor, "aclrtLaunchKernel"), *second = dlsym(other, "aclrtLaunchKernel");
  printf("%s %s\n", owner(first), owner(second));
  printf("launched %d %d\n", ((launch *)first)((void *)1, 2, NULL, 0, NULL), ((launch *)second)((void *)1, 2, NULL, 0, NULL));
  printf("same again %d\n", dlsym(vendor, "aclrtLaunchKernel") == first);
  printf("not wrapped %s\n", owner(dlsym(vendor, "aclrtGetFunctionName")));
  void *nowhere = dlsym(vendor, "aclrtSynchronizeNothing");
  const char *complaint = dlerror();
  printf("nowhere %d %s\n", nowhere != NULL, complaint && strstr(complaint, "aclrtSynchronizeNothing") ? "is said" : "is not said");
  // A wrapped name that this library lacks.
  void *lacking = dlsym(vendor, "rtKernelLaunch");
  printf("lacking %d %s\n", lacking != NULL, dlerror() ? "is said" : "is not said");
  printf("libc %s\n", owner(dlsym(RTLD_DEFAULT, "getpid")));
  printf("dlsym %d\n", dlsym(RTLD_DEFAULT, "dlsym") == (void *)dlsym);
  return 42;
}
