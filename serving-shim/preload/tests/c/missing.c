// Calls functions that it was linked with and looks them up while no vendor library is loaded, then loads one.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>

typedef int function(void *, uint32_t, void *, uint64_t, void *, void *, void *, void *);

// Weak, so that the program is linked without the library.
#define EACH(F) F(aclrtLaunchKernel) F(rtKernelLaunch) F(HcclBarrier) F(aclopExecuteV2) F(aclprofStart) F(aclrtSynchronizeDevice)
#define DECLARE(name) extern __attribute__((weak)) function name;
EACH(DECLARE)

static void call(const char *name, function *function) {
  errno = 17;
  int result = function(0, 1, 0, 0, 0, 0, 0, 0);
  printf("%s %d%s\n", name, result, errno == 17 ? "" : " and another errno");
}
#define CALL(name) call(#name, name);

// How programs find out whether the installed CANN has a function.
static void ask(const char *name) {
  dlerror();
  void *found = dlsym(RTLD_DEFAULT, name);
  const char *said = dlerror();
  if (!found != !dlsym(dlopen(NULL, RTLD_LAZY), name)) printf(" not alike:");
  if (!found != !!said) printf(" without a message:");
  if (found) printf(" %s", name);
}
#define ASK(name) ask(#name);
#define ASK_ALL(when) printf("there %s:", when); EACH(ASK) printf("\n")

int main(int argc, char **argv) {
  ASK_ALL("at first");
  EACH(CALL)
  EACH(CALL)
  ASK_ALL("after the calls");
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
    EACH(CALL)
    ASK_ALL("at last");
  }
  return 42;
}
