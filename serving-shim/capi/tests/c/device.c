/* Launches into the default stream of a device. */
#include <sa_profile.h>

#include <unistd.h>

#include "check.h"

int main(void) {
  sa_profile_init();
  for (int layer = 0; layer < 20; layer++) {
    sa_profile_launch_t launch = sa_profile_launch_begin(NULL, "matmul", 24);
    sa_profile_launch_args(launch, SA_PROFILE_ARGS(SA_PROFILE_ARG("layer", layer)));
    usleep(300);
    sa_profile_launch_end(launch, 0);
  }
  sa_profile_launch_end(sa_profile_launch_begin(NULL, "failed", 24), 507015);
  CHECK(sa_profile_launch_flush(10000000000u));
  return 0;
}
