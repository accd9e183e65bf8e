// Runs the worker: linked in, or from a library loaded locally, as Python loads its extensions.
#include <dlfcn.h>
int work(const char *how) __attribute__((weak));
int main(int argc, char **argv) {
  int (*run)(const char *) = work;
  if (!run) run = (int (*)(const char *))dlsym(dlopen(argv[1], RTLD_LAZY), "work");
  return run(argv[argc - 1]);
}
