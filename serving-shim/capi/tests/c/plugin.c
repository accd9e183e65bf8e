/* A plugin with the recorder in it. */
#include <sa_profile.h>

void plugin_step(void);
void plugin_step(void) {
  sa_profile_span_end(sa_profile_span_begin(SA_PROFILE_LEVEL_E2E, "plugin", "step"));
}
