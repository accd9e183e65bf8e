// Calls the vendor's library by name and through its handle, and checks that errno and dlerror are unchanged.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef int copy(void *to, size_t room, const void *from, size_t bytes, int kind, void *stream);
typedef int replay(void *model, void *stream);
copy aclrtMemcpyAsync;

int main(void) {
  void *vendor = dlopen("libascendcl.so", RTLD_LAZY | RTLD_NOLOAD);
  if (!vendor) return 99;
  replay *execute = (replay *)dlsym(vendor, "aclmdlRIExecuteAsync");
  copy *found = (copy *)dlsym(vendor, "aclrtMemcpyAsync"); // from now on it is bound
  if (!execute || !found) return 98;
  dlsym(vendor, "nowhere_to_be_found");
  errno = 77;
  aclrtMemcpyAsync((void *)1, 2, (void *)3, 2, 0, NULL);
  int error = errno;
  const char *complaint = dlerror();
  printf("errno %d, dlerror %s\n", error, complaint && strstr(complaint, "nowhere_to_be_found") ? "kept" : "gone");
  execute((void *)1, NULL);
  return 42;
}
