/* Opens the plugin at argv[1], records in a thread through its function argv[2], and closes the plugin. Then the thread ends, the process forks and
   exits. All handlers that the recorder registered thus run after the dlclose. */
#include "check.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

typedef void (*record_t)(uint64_t);
static record_t record;
static pthread_barrier_t recorded, closed;

static void *thread(void *unused) {
  record(1000);
  pthread_barrier_wait(&recorded);
  pthread_barrier_wait(&closed);
  return unused;
}

int main(int argc, char **argv) {
  CHECK(argc == 3);
  void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  CHECK(plugin != NULL);
  *(void **)&record = dlsym(plugin, argv[2]);
  CHECK(record != NULL);
  pthread_barrier_init(&recorded, NULL, 2);
  pthread_barrier_init(&closed, NULL, 2);
  pthread_t one;
  CHECK(pthread_create(&one, NULL, thread, NULL) == 0);
  pthread_barrier_wait(&recorded);
  CHECK(dlclose(plugin) == 0);
  usleep(300000); /* the recorder's own thread wakes up a few times */
  pthread_barrier_wait(&closed);
  CHECK(pthread_join(one, NULL) == 0);
  pid_t child = fork();
  if (child == 0)
    _exit(0);
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  return 0;
}
