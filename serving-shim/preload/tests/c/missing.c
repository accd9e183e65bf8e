// Finds functions as a program does that asks whether they are there, with no vendor library loaded, and calls them; then loads one.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>

static int call(const char *name) {
  int (*function)(void *, uint32_t, void *, uint64_t, void *, void *, void *, void *) = dlsym(RTLD_DEFAULT, name);
  if (!function) return -1;
  errno = 17;
  int result = function(0, 1, 0, 0, 0, 0, 0, 0);
  if (errno != 17) printf("errno %d\n", errno);
  return result;
}

int main(int argc, char **argv) {
  static const char *names[] = {"aclrtLaunchKernel", "rtKernelLaunch", "HcclBarrier", "aclopExecuteV2", "aclprofStart", "aclrtSynchronizeDevice"};
  for (unsigned round = 0; round < 2; round++)
    for (unsigned n = 0; n < sizeof names / sizeof *names; n++) printf("%s %d\n", names[n], call(names[n]));
  uint64_t (*start)(const char *, void *) = dlsym(RTLD_DEFAULT, "mstxRangeStartA");
  void (*end)(uint64_t) = dlsym(RTLD_DEFAULT, "mstxRangeEnd");
  void (*mark)(const char *, void *) = dlsym(RTLD_DEFAULT, "mstxMarkA");
  void *(*create)(const char *) = dlsym(RTLD_DEFAULT, "mstxDomainCreateA");
  uint64_t (*start_in)(void *, const char *, void *) = dlsym(RTLD_DEFAULT, "mstxDomainRangeStartA");
  void (*end_in)(void *, uint64_t) = dlsym(RTLD_DEFAULT, "mstxDomainRangeEnd");
  uint64_t outer = start("outer", 0), inner = start("inner", 0);
  void *domain = create("comm");
  uint64_t within = start_in(domain, "within", 0);
  mark("here", 0);
  end(outer);
  end(inner);
  end_in(domain, within);
  end(12345);
  printf("ids %d, domain %d\n", outer != inner && inner != within && outer != 0, domain != NULL);
  if (argc > 1) {
    if (!dlopen(argv[1], RTLD_LAZY)) printf("%s\n", dlerror());
    printf("loaded: aclrtLaunchKernel %d, rtKernelLaunch %d\n", call("aclrtLaunchKernel"), call("rtKernelLaunch"));
  }
  return 42;
}
