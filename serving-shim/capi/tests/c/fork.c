/* A process that forks with spans open, and a child that forks again. */
#include <sa_profile.h>

#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define E2E SA_PROFILE_LEVEL_E2E

static void wait_for(pid_t child) {
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void in_child(sa_profile_span_t open, sa_profile_async_span_t async) {
  /* Before the child records anything, and after. */
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
    exit(0);
  }
  wait_for(grandchild);
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
  wait_for(child);
  sa_profile_span_arg_string(open, "by", "parent");
  sa_profile_async_span_arg_string(async, "by", "parent");
  sa_profile_async_span_end(async);
  sa_profile_span_end(open);
  return 0;
}
