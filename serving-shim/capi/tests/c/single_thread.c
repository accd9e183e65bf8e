/* Actions that only a process with one thread may take, or that behave differently with two, each after recording: `program ACTION`. */
#define _GNU_SOURCE
#include <sa_profile.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { SPANS = 100 };

static int opened; /* number of opened files */

/* Replaces the C library's function in this program and its libraries. */
int open(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const int mode = va_arg(rest, int);
  va_end(rest);
  __atomic_add_fetch(&opened, 1, __ATOMIC_RELAXED);
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static void record(void) {
  for (int at = 0; at < SPANS; at++) {
    sa_profile_span_end(sa_profile_span_begin(SA_PROFILE_LEVEL_E2E, "test", "work"));
  }
}

static int threads(void) {
  struct stat tasks;
  CHECK(stat("/proc/self/task", &tasks) == 0);
  return (int)tasks.st_nlink - 2;
}

/* Records until the process has `count` threads. */
static void wait_for_threads(int count) {
  const time_t end = time(NULL) + 60;
  while (threads() != count) {
    CHECK(time(NULL) < end);
    record();
    usleep(10000);
  }
}

/* Records for a second and returns the number of files that were opened during it. */
static int opened_in_a_second(void) {
  const int before = opened;
  for (int at = 0; at < 100; at++) {
    record();
    usleep(10000);
  }
  return opened - before;
}

static void say_goodbye(void) {
  record();
  puts("an exit handler ran");
}

static void *other(void *unused) {
  record();
  wait_for_threads(3);
  return unused;
}

/* The only thread that records. It continues after the first thread has ended. */
static void *survivor(void *unused) {
  record();
  usleep(700000);
  record();
  return unused;
}

/* Removes the capability to change the user from the calling thread only. */
static void drop_capability(void) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct data[2];
  CHECK(syscall(SYS_capget, &header, data) == 0);
  data[0].effective &= ~(1U << CAP_SETUID);
  data[0].permitted &= ~(1U << CAP_SETUID);
  CHECK(syscall(SYS_capset, &header, data) == 0);
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  const char *action = argv[1];
  sa_profile_init();
  atexit(say_goodbye);
  if (strcmp(action, "survivor") == 0) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, survivor, NULL) == 0);
    pthread_exit(NULL);
  }
  record();
  if (strcmp(action, "second thread") == 0) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, other, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    return 0;
  }
  if (strcmp(action, "a while") == 0 || getenv("SA_PROFILE_THREADS") != NULL) wait_for_threads(2);
  else CHECK(threads() == 1);
  if (strcmp(action, "a while") == 0) return 0;
  if (strcmp(action, "numbers") == 0) {
    printf("%d files were opened\n", opened_in_a_second());
    return 0;
  }
  fflush(stdout);
  if (strcmp(action, "pthread_exit") == 0) pthread_exit(NULL);
  if (strcmp(action, "SYS_exit") == 0) syscall(SYS_exit, 5);
  if (strcmp(action, "unshare") == 0) {
    printf("a user namespace: %d\n", unshare(CLONE_NEWUSER) == 0 ? 0 : errno);
  } else {
    CHECK(strcmp(action, "setresuid") == 0);
    drop_capability();
    printf("another user: %d\n", setresuid(65534, 65534, 65534) == 0 ? 0 : errno);
  }
  record();
  return 3;
}
