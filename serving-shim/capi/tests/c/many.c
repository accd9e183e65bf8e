/* More async spans than may be open at a time. Prints how many were refused. */
#include <sa_profile.h>

#include <inttypes.h>

#include "check.h"

enum { BOUND = 65536, MORE = 10 };

int main(void) {
  sa_profile_init();
  static sa_profile_async_span_t spans[BOUND + MORE];
  for (int at = 0; at < BOUND + MORE; at++) spans[at] = sa_profile_async_span_begin(SA_PROFILE_LEVEL_E2E, "test", "many");
  CHECK(sa_profile_async_span_is_recording(spans[BOUND - 1]) && !sa_profile_async_span_is_recording(spans[BOUND]));
  printf("%" PRIu64 "\n", sa_profile_dropped());
  sa_profile_async_span_end(spans[0]);
  CHECK(sa_profile_async_span_is_recording(sa_profile_async_span_begin(SA_PROFILE_LEVEL_E2E, "test", "room again")));
  return 0;
}
