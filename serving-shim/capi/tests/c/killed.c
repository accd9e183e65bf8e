/* Records, and kills itself with spans open. */
#include <sa_profile.h>

#include <signal.h>

#define E2E SA_PROFILE_LEVEL_E2E

int main(void) {
  sa_profile_init();
  sa_profile_async_span_t request = sa_profile_async_span_begin(E2E, "test", "open async");
  sa_profile_async_span_arg_string(request, "request_id", "cmpl-1");
  sa_profile_span_t step = sa_profile_span_begin_args(
      E2E, "test", "open", SA_PROFILE_ARGS(SA_PROFILE_ARG("batch", 7), SA_PROFILE_ARG("request_id", "cmpl-2")));
  sa_profile_span_arg_int(step, "tokens", 42);
  for (int at = 0; at < 1000; at++) sa_profile_span_end(sa_profile_span_begin(E2E, "test", "done"));
  raise(SIGKILL);
  return 0;
}
