/* The second translation unit of a program. It includes the header twice. */
#include <sa_profile.h>
#include <sa_profile.h>

const char *second_language(void);

const char *second_language(void) {
  sa_profile_span_t span = sa_profile_span_begin_args(SA_PROFILE_LEVEL_E2E, "test", "second",
                                                      SA_PROFILE_ARGS(SA_PROFILE_ARG("s", "x"), SA_PROFILE_ARG("i", 1)));
  sa_profile_span_end(span);
  return "C";
}
