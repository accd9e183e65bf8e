/* A plugin that contains the recorder. With AT_LOAD it also records while it is being loaded. */
#include <sa_profile.h>
#include <stdint.h>

void plugin_step(uint64_t count);
void plugin_step(uint64_t count) {
  for (uint64_t step = 0; step < count; step++)
    sa_profile_span_end(sa_profile_span_begin(SA_PROFILE_LEVEL_E2E, "plugin", "step"));
}

#ifdef AT_LOAD
__attribute__((constructor)) static void loaded(void) {
  uint64_t began_ns = sa_profile_now_ns();
  sa_profile_instant(SA_PROFILE_LEVEL_E2E, "plugin", "first", SA_PROFILE_NO_ARGS);
  uint64_t took_ns = sa_profile_now_ns() - began_ns;
  sa_profile_instant(SA_PROFILE_LEVEL_E2E, "plugin", "loaded", SA_PROFILE_ARGS(SA_PROFILE_ARG("took_ns", took_ns)));
}
#endif
