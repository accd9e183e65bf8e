// Asks a library that has nothing to do with the vendor's for a function of its name, closes it, and then calls the vendor's by name in a plugin.
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
  (void)argc;
  void *other = dlopen(argv[1], RTLD_LAZY);
  if (!other) return 99;
  int (*found)(void) = dlsym(other, "aclrtSynchronizeDevice");
  printf("other %d\n", found());
  dlclose(other);
  void *plugin = dlopen(argv[2], RTLD_LAZY);
  if (!plugin) return printf("%s\n", dlerror()), 98;
  int (*call)(void) = dlsym(plugin, "wait_for_device");
  printf("vendor %d\n", call());
  return 42;
}
