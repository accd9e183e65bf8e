/* Launches into the default stream of a simulated device. The vendor's runtime does not work in the child of a fork, so the shim must not call it there. */
#include <sa_profile.h>

#include <acl_abi.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

uint64_t ascend_sim_calls(void);

static uint64_t calls;

static void check_calls(void) {
  if (ascend_sim_calls() != calls) _exit(9);
}

int main(void) {
  CHECK(atexit(check_calls) == 0); /* registered before all handlers of the recorder, so it runs after them */
  sa_profile_init();
  aclrtBinHandle binary;
  aclrtFuncHandle matmul;
  CHECK(aclrtSetDevice(0) == 0 && aclrtBinaryLoadFromData("x", 1, NULL, &binary) == 0);
  CHECK(aclrtBinaryGetFunction(binary, "matmul", &matmul) == 0);
  for (int layer = 0; layer < 20; layer++) {
    sa_profile_launch_t launch = sa_profile_launch_begin(NULL, "matmul", 24);
    sa_profile_launch_args(launch, SA_PROFILE_ARGS(SA_PROFILE_ARG("layer", layer)));
    CHECK(aclrtLaunchKernelWithHostArgs(matmul, 24, NULL, NULL, "", 0, NULL, 0) == 0);
    sa_profile_launch_end(launch, 0);
  }
  sa_profile_launch_end(sa_profile_launch_begin(NULL, "failed", 24), 507015);

  sa_profile_launch_t open = sa_profile_launch_begin(NULL, "open at fork", 0);
  calls = ascend_sim_calls();
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
  sa_profile_finish();
  fflush(stdout);
  _exit(0);
}
