// Calls the vendor's library by name, and by a function that it found through its handle; and looks whether errno and dlerror are what they were.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int copy(void *to, size_t room, const void *from, size_t bytes, int kind, void *stream);
typedef int replay(void *model, void *stream);
copy aclrtMemcpyAsync;

// A child launches too, and ends with the pipe.
static pid_t child(replay *execute, int pipe[2]) {
  fflush(stdout);
  pid_t child = fork();
  if (child) return child;
  char none;
  close(pipe[1]);
  execute((void *)1, NULL);
  _Exit((int)read(pipe[0], &none, 1));
}

// With an argument it has a child before its first launch, and another one after that.
int main(int argc, char **argv) {
  (void)argv;
  void *vendor = dlopen("libascendcl.so", RTLD_LAZY | RTLD_NOLOAD);
  if (!vendor) return 99;
  replay *execute = (replay *)dlsym(vendor, "aclmdlRIExecuteAsync");
  copy *found = (copy *)dlsym(vendor, "aclrtMemcpyAsync"); // nobody has to look for it any more
  if (!execute || !found) return 98;
  int ends[2], status = 1;
  if (pipe(ends)) return 97;
  pid_t before = argc > 1 ? child(execute, ends) : 0;
  dlsym(vendor, "nowhere_to_be_found");
  errno = 77;
  aclrtMemcpyAsync((void *)1, 2, (void *)3, 2, 0, NULL);
  int error = errno;
  const char *complaint = dlerror();
  printf("errno %d, dlerror %s\n", error, complaint && strstr(complaint, "nowhere_to_be_found") ? "kept" : "gone");
  execute((void *)1, NULL);
  pid_t after = argc > 1 ? child(execute, ends) : 0;
  close(ends[1]);
  if (before && (waitpid(before, &status, 0) != before || status)) return 96;
  if (after && (waitpid(after, &status, 0) != after || status)) return 95;
  return 42;
}
