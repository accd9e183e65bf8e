/* Records if anything asks for it, and behaves the same if nothing does. */
#include <sa_profile.h>

int main(void) {
  sa_profile_init();
  sa_profile_span_end(sa_profile_span_begin(SA_PROFILE_LEVEL_E2E, "test", "one"));
  return 0;
}
