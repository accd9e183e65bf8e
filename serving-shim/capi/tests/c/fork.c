/* A process that forks with spans open, a child that forks again, and a grandchild that is killed. */
#include <sa_profile.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define E2E SA_PROFILE_LEVEL_E2E

static void wait_for(pid_t child, int expected) {
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && status == expected);
}

/* Kills the process while spans are open. */
static void die(void) {
  sa_profile_async_span_t request = sa_profile_async_span_begin(E2E, "test", "open async");
  sa_profile_async_span_arg_string(request, "request_id", "cmpl-1");
  sa_profile_span_t step = sa_profile_span_begin_args(
      E2E, "test", "open", SA_PROFILE_ARGS(SA_PROFILE_ARG("batch", 7), SA_PROFILE_ARG("request_id", "cmpl-2")));
  sa_profile_span_arg_int(step, "tokens", 42);
  for (int at = 0; at < 1000; at++) sa_profile_span_end(sa_profile_span_begin(E2E, "test", "done"));
  raise(SIGKILL);
}

static void in_child(sa_profile_span_t open, sa_profile_async_span_t async) {
  /* Uses the parent's handles before the child has recorded anything, and afterwards. */
  sa_profile_span_arg_int(open, "by", 1);
  sa_profile_async_span_end(async);
  sa_profile_span_end(open);
  sa_profile_span_t own = sa_profile_span_begin(E2E, "test", "child");
  sa_profile_async_span_t own_async = sa_profile_async_span_begin(E2E, "test", "child async");
  CHECK(sa_profile_span_is_recording(own) && own.id != open.id && own_async.id != async.id);
  sa_profile_span_end(open);
  sa_profile_async_span_arg_int(async, "by", 1);
  sa_profile_async_span_end(async);
  const pid_t grandchild = fork();
  CHECK(grandchild >= 0);
  if (grandchild == 0) {
    sa_profile_span_end(own);
    sa_profile_async_span_end(own_async);
    sa_profile_span_end(sa_profile_span_begin(E2E, "test", "grandchild"));
    die();
  }
  wait_for(grandchild, SIGKILL);
  sa_profile_async_span_end(own_async);
  sa_profile_span_end(own);
  exit(0);
}

int main(void) {
  sa_profile_init();
  sa_profile_span_end(sa_profile_span_begin(E2E, "test", "parent"));
  sa_profile_span_t open = sa_profile_span_begin(E2E, "test", "open at fork");
  sa_profile_async_span_t async = sa_profile_async_span_begin(E2E, "test", "async at fork");
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) in_child(open, async);
  wait_for(child, 0);
  sa_profile_span_arg_string(open, "by", "parent");
  sa_profile_async_span_arg_string(async, "by", "parent");
  sa_profile_async_span_end(async);
  sa_profile_span_end(open);
  return 0;
}
