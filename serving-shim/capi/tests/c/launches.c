/* Launches without a device's runtime, runs with times from their runtime, and a fork with an open launch. */
#include <sa_profile.h>

#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static void *end_there(void *launch) {
  sa_profile_launch_args(*(sa_profile_launch_t *)launch, SA_PROFILE_ARGS(SA_PROFILE_ARG("elsewhere", 1)));
  sa_profile_launch_end(*(sa_profile_launch_t *)launch, 0);
  return NULL;
}

static void spans(void) {
  sa_profile_launch_t launch = sa_profile_launch_begin(NULL, "matmul", 24);
  CHECK(sa_profile_launch_is_recording(launch));
  sa_profile_launch_args(launch, SA_PROFILE_ARGS(SA_PROFILE_ARG("m", 64), SA_PROFILE_ARG("dtype", "bf16")));
  sa_profile_launch_end(launch, 0);
  sa_profile_launch_args(launch, SA_PROFILE_ARGS(SA_PROFILE_ARG("late", 1)));
  sa_profile_launch_end(launch, 7);

  sa_profile_launch_end(sa_profile_launch_begin(NULL, "refused", 0), 107003);
  sa_profile_launch_end(sa_profile_launch_begin(NULL, NULL, 0), 0);

  launch = sa_profile_launch_begin(NULL, "own thread", 0);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, end_there, &launch) == 0 && pthread_join(thread, NULL) == 0);
  sa_profile_launch_end(launch, 0);
}

static void walls(void) {
  const uint64_t start_ns = sa_profile_now_ns() - 3000000;
  sa_profile_launch_walls("run", start_ns, 2000000, 1500000, 3, SA_PROFILE_ARGS(SA_PROFILE_ARG("step", 1)));
  sa_profile_launch_walls("host only", SA_PROFILE_ENDS_NOW, 2000000, 1500000, SA_PROFILE_NO_DEVICE, SA_PROFILE_NO_ARGS);
}

static void in_child(sa_profile_launch_t open) {
  sa_profile_launch_args(open, SA_PROFILE_ARGS(SA_PROFILE_ARG("by", "child")));
  sa_profile_launch_end(open, 3);
  sa_profile_span_end(sa_profile_span_begin(SA_PROFILE_LEVEL_E2E, "test", "child"));
  exit(0);
}

int main(void) {
  sa_profile_init();
  errno = 4711;
  spans();
  walls();
  sa_profile_launch_t open = sa_profile_launch_begin(NULL, "open at fork", 0);
  CHECK(errno == 4711);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) in_child(open);
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  sa_profile_launch_end(open, 0);
  CHECK(sa_profile_launch_flush(1000000000));

  int refused = 0;
  for (int at = 0; at < 300; at++) refused += !sa_profile_launch_is_recording(sa_profile_launch_begin(NULL, "left open", 0));
  CHECK(refused == 300 - 256);
  return 0;
}
