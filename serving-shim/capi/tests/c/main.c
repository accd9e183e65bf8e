/* The first translation unit of a program of two; everything in the header is named without a warning. */
#include <sa_profile.h>

#include <string.h>

#include "check.h"

const char *second_language(void);

int main(void) {
  CHECK(strcmp(sa_profile_version(), SA_PROFILE_VERSION) == 0);
  CHECK(SA_PROFILE_VERSION_MAJOR == 0);
  sa_profile_async_span_t none = {0};
  CHECK(!sa_profile_async_span_is_recording(none));
  sa_profile_async_span_end(none);
  printf("C and %s\n", second_language());
  return 0;
}
