/* Launches into the default stream of a device. */
#include <sa_profile.h>

#include <sys/wait.h>
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

  sa_profile_launch_t open = sa_profile_launch_begin(NULL, "open at fork", 0);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    sa_profile_launch_end(open, 0);
    exit(0);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  sa_profile_launch_end(open, 0);
  CHECK(sa_profile_launch_flush(10000000000u));
  return 0;
}
