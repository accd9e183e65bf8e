// Calls every function in one call form, for a few answers of the real one, and prints everything that a program can see.
//   direct          by name; this program is linked with the libraries
//   local LIBRARY   by name, in a library that is loaded locally, as Python loads its extensions
//   handle LIB…     by dlsym on the handles of these libraries
//   default LIB…    by dlsym(RTLD_DEFAULT), these libraries being loaded globally
#define _GNU_SOURCE
#include "interface.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef DIRECT
void call_everything(void);
#define call_found(lookup) ((void)(lookup), abort())
#else
#define call_everything NULL
void call_found(void *(*lookup)(const char *));
#endif

static void *handles[16];
static int count;

static void *open_library(const char *path, int flags) {
  void *handle = dlopen(path, flags);
  if (!handle) {
    fprintf(stderr, "%s\n", dlerror());
    exit(99);
  }
  return handle;
}

static void *in_handles(const char *name) {
  for (int n = 0; n < count; n++) {
    void *found = dlsym(handles[n], name);
    if (found) return found;
  }
  return NULL;
}

static void *in_default(const char *name) { return dlsym(RTLD_DEFAULT, name); }

int main(int argc, char **argv) {
  const char *form = argc > 1 ? argv[1] : "";
  void (*local)(void) = NULL;
  setvbuf(stdout, NULL, _IOFBF, 1 << 20);
  if (!strcmp(form, "local")) local = (void (*)(void))dlsym(open_library(argv[2], RTLD_LAZY), "call_everything");
  if (!strcmp(form, "direct")) local = call_everything;
  for (int n = 2; n < argc && !local; n++)
    handles[count++] = open_library(argv[n], !strcmp(form, "default") ? RTLD_LAZY | RTLD_GLOBAL : RTLD_LAZY);
  answer *next = dlsym(open_library("libfake_answer.so", RTLD_LAZY), "fake_answer");
  static const answer answers[] = {{0, 0}, {107017, 11}, {0, 22}, {-1, 0}};
  for (unsigned n = 0; n < sizeof answers / sizeof *answers; n++) {
    *next = answers[n];
    printf("answer %d, errno %d\n", next->result, next->error);
    if (local) local();
    else if (!strcmp(form, "handle")) call_found(in_handles);
    else if (!strcmp(form, "default")) call_found(in_default);
  }
  const char *complaint = dlerror();
  printf("dlerror %s\n", complaint ? complaint : "none");
  fprintf(stderr, "done\n");
  return 42;
}
