/* Loads a library as Python does, for itself alone, and says how a function of it can be found: loader PATH FUNCTION. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **arguments) {
  if (count != 3) return 2;
  void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  void *by_name = dlopen("libascendcl.so", RTLD_LAZY | RTLD_NOLOAD);
  void *function = dlsym(library, arguments[2]);
  printf("handle %s, default %s, next %s, soname %s\n", function ? "yes" : "no", dlsym(RTLD_DEFAULT, arguments[2]) ? "yes" : "no",
         dlsym(RTLD_NEXT, arguments[2]) ? "yes" : "no", by_name == library ? "yes" : "no");
  dlclose(library);
  return 0;
}
