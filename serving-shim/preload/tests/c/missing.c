// Calls functions that it is linked with, with no vendor library loaded, and asks whether they are there; then loads one.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>

typedef int function(void *, uint32_t, void *, uint64_t, void *, void *, void *, void *);

// Weak, so that the program is linked without the library.
#pragma weak aclrtLaunchKernel
#pragma weak rtKernelLaunch
#pragma weak HcclBarrier
#pragma weak aclopExecuteV2
#pragma weak aclprofStart
#pragma weak aclrtSynchronizeDevice
extern function aclrtLaunchKernel, rtKernelLaunch, HcclBarrier, aclopExecuteV2, aclprofStart, aclrtSynchronizeDevice;

static int call(function *function) {
  errno = 17;
  int result = function(0, 1, 0, 0, 0, 0, 0, 0);
  if (errno != 17) printf("errno %d\n", errno);
  return result;
}

// What programs do to find out whether this CANN has a function.
static void ask(const char *when) {
  static const char *names[] = {"aclrtLaunchKernel", "rtKernelLaunch", "HcclBarrier", "aclopExecuteV2", "aclprofStart", "aclrtSynchronizeDevice"};
  void *program = dlopen(NULL, RTLD_LAZY);
  printf("there %s:", when);
  for (unsigned n = 0; n < sizeof names / sizeof *names; n++) {
    dlerror();
    void *found = dlsym(RTLD_DEFAULT, names[n]);
    const char *said = dlerror();
    if (!found != !dlsym(program, names[n])) printf(" not alike:");
    if (!found != !!said) printf(" without a message:");
    if (found) printf(" %s", names[n]);
  }
  printf("\n");
}

int main(int argc, char **argv) {
  ask("at first");
  for (unsigned round = 0; round < 2; round++) {
    printf("aclrtLaunchKernel %d\n", call(aclrtLaunchKernel));
    printf("rtKernelLaunch %d\n", call(rtKernelLaunch));
    printf("HcclBarrier %d\n", call(HcclBarrier));
    printf("aclopExecuteV2 %d\n", call(aclopExecuteV2));
    printf("aclprofStart %d\n", call(aclprofStart));
    printf("aclrtSynchronizeDevice %d\n", call(aclrtSynchronizeDevice));
  }
  ask("after the calls");
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
    printf("loaded: aclrtLaunchKernel %d, rtKernelLaunch %d\n", call(aclrtLaunchKernel), call(rtKernelLaunch));
    ask("at last");
  }
  return 42;
}
