// Another library that replaces dlsym and prints each query. It forwards to the next dlsym, or to that of the C library.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

void *dlsym(void *handle, const char *name) {
  void *(*next)(void *, const char *) = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  if (!next) next = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.17");
#ifdef NEXT
  next = next(RTLD_NEXT, "dlsym");
#endif
  if (!strcmp(name, "getpid")) printf("hook asked %s\n", name);
  return next(handle, name);
}
