// Runs the worker: linked in, or from a library loaded locally, as Python loads its extensions.
#include <dlfcn.h>
#include <stdio.h>
#ifdef LINKED
int work(const char *how);
#endif
int main(int argc, char **argv) {
#ifdef LINKED
  return work(argv[argc - 1]);
#else
  void *library = dlopen(argv[1], RTLD_LAZY);
  int (*work)(const char *) = library ? (int (*)(const char *))dlsym(library, "work") : NULL;
  if (!work) return puts(dlerror()), 1;
  return work(argv[argc - 1]);
#endif
}
