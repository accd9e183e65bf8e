// Launches in threads, in a forked child, after an exec, and next to a library with its own recorder. Linked with the libraries.
#include "interface.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
EVERYTHING(DECLARE)

static void launch(int times) {
  for (int n = 0; n < times; n++)
    if (aclrtLaunchKernel(NULL, 1, NULL, 0, NULL)) abort();
}

static void *thread(void *times) {
  launch((int)(intptr_t)times);
  return NULL;
}

static void threads(int count, int times) {
  pthread_t all[64];
  for (int n = 0; n < count; n++) pthread_create(&all[n], NULL, thread, (void *)(intptr_t)times);
  for (int n = 0; n < count; n++) pthread_join(all[n], NULL);
}

int main(int argc, char **argv) {
  const char *what = argv[1];
  if (!strcmp(what, "threads")) threads(8, 1000);
  else if (!strcmp(what, "fork")) {
    pid_t child = fork();
    launch(child ? 5 : 7);
    if (!child) threads(2, 10);
    if (child && waitpid(child, NULL, 0) != child) abort();
    if (!child) return 42;
    child = fork(); // the parent has used the runtime, so this child has none
    if (!child) {
      launch(3);
      aclrtSynchronizeDevice();
      return 42;
    }
    if (waitpid(child, NULL, 0) != child) abort();
  } else if (!strcmp(what, "exec")) {
    launch(3);
    execl(argv[0], argv[0], "threads", NULL);
  } else if (!strcmp(what, "library")) {
    void *library = dlopen(argv[2], RTLD_LAZY);
    void (*record)(uint64_t) = library ? dlsym(library, "second_recorder_record") : NULL;
    if (!record) abort();
    for (int n = 0; n < 10; n++) {
      launch(10);
      record(10);
    }
  }
  return 42;
}
