// Looks up a function that some versions of CANN lack: before the library is loaded, then by its handle and in the global scope. Calls the function if it finds one.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

typedef int update(void *model);

int main(int argc, char **argv) {
  (void)argc;
  const char *name = "aclmdlRIUpdate";
  printf("before %d\n", dlsym(RTLD_DEFAULT, name) != NULL);
  printf("said %d\n", dlerror() != NULL);
  void *local = dlopen(argv[1], RTLD_LAZY);
  if (!local) return 99;
  printf("local %d\n", dlsym(RTLD_DEFAULT, name) != NULL);
  update *by_handle = (update *)dlsym(local, name);
  if (!by_handle) return 98;
  printf("by handle %d\n", by_handle((void *)0x5a));
  if (!dlopen(argv[1], RTLD_LAZY | RTLD_GLOBAL)) return 97;
  update *global = (update *)dlsym(RTLD_DEFAULT, name);
  if (!global) return 96;
  printf("global %d, the same %d\n", global((void *)0x5b), global == by_handle);
  return 42;
}
