/* Calls every function without the environment variables that turn recording on. */
#include <sa_profile.h>

#include <errno.h>
#include <string.h>

#include "check.h"

#define E2E SA_PROFILE_LEVEL_E2E

int main(void) {
  errno = 4711;
  sa_profile_init();
  CHECK(!sa_profile_is_enabled() && !sa_profile_includes(E2E) && !sa_profile_is_main());
  sa_profile_span_t span = sa_profile_span_begin_args(E2E, "test", "off", SA_PROFILE_ARGS(SA_PROFILE_ARG("k", 1)));
  CHECK(span.id == 0);
  sa_profile_span_arg_int(span, "k", 1);
  sa_profile_span_end(span);
  sa_profile_async_span_t async = sa_profile_async_span_begin(E2E, "test", "off");
  CHECK(async.id == 0);
  sa_profile_async_span_end(async);
  sa_profile_instant(E2E, "test", "off", SA_PROFILE_NO_ARGS);
  sa_profile_counter(E2E, "off", SA_PROFILE_ARGS(SA_PROFILE_ARG("k", 1)));
  sa_profile_flow(E2E, SA_PROFILE_FLOW_START, "test", "off", 1);
  sa_profile_flow_text(E2E, SA_PROFILE_FLOW_START, "test", "off", "cmpl-0");
  sa_profile_duration(E2E, "test", "off", SA_PROFILE_ENDS_NOW, 1, SA_PROFILE_NO_ARGS);
  sa_profile_process_set_name("off");
  sa_profile_thread_set_name("off");
  char path[16] = "unchanged";
  CHECK(sa_profile_directory(path, sizeof path) == 0 && strcmp(path, "") == 0);
  sa_profile_flush();
  sa_profile_finish();
  CHECK(sa_profile_dropped() == 0 && errno == 4711);
  return 0;
}
