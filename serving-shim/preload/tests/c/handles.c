// Looks functions up by the handles of two libraries and prints the results: of a foreign library with the vendor's names, which is closed again, of the vendor's library, and for names that do not exist.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef int launch(void *func, uint32_t blocks, const void *args, size_t bytes, void *stream);

static const char *owner(void *address) {
  Dl_info info;
  if (!address || !dladdr(address, &info)) return "nobody";
  const char *slash = strrchr(info.dli_fname, '/');
  return slash ? slash + 1 : info.dli_fname;
}

static void *launched(void *library) {
  void *found = dlsym(library, "aclrtLaunchKernel");
  printf("%s launched %d\n", owner(found), ((launch *)found)((void *)1, 2, NULL, 0, NULL));
  return found;
}

static void say_missing(void *library, const char *name) {
  void *found = dlsym(library, name);
  const char *complaint = dlerror();
  printf("%s %d %s\n", name, found != NULL, complaint && strstr(complaint, name) ? "is said" : "is not said");
}

int main(int argc, char **argv) {
  void *other = dlopen(argv[argc - 2], RTLD_LAZY);
  if (!other) return 99;
  launched(other);
  dlclose(other);
  void *vendor = dlopen(argv[argc - 1], RTLD_LAZY);
  if (!vendor) return 98;
  void *found = launched(vendor);
  printf("same again %d\n", dlsym(vendor, "aclrtLaunchKernel") == found);
  printf("not wrapped %s\n", owner(dlsym(vendor, "aclrtGetFunctionName")));
  say_missing(vendor, "aclrtSynchronizeNothing");
  say_missing(vendor, "rtKernelLaunch"); // a wrapped name that this library lacks
  printf("libc %s\n", owner(dlsym(RTLD_DEFAULT, "getpid")));
  printf("dlsym %d\n", dlsym(RTLD_DEFAULT, "dlsym") == (void *)dlsym);
  return 42;
}
