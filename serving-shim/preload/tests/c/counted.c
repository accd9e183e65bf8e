// Launches on the simulated runtime, and prints how many calls of the runtime each made on the launching thread, itself included: at least, and on average.
// Creating a pair of events takes two more, if the device's thread has not returned one yet.
//   counted LAUNCHES
#include "acl_abi.h"
#include <stdio.h>
#include <stdlib.h>

uint64_t ascend_sim_calls(void);

static aclrtFuncHandle func;

static void launches(const char *what, aclrtStream stream, int times, int ask) {
  uint32_t task, own;
  uint64_t calls = 0, least = UINT64_MAX;
  for (int n = 0; n < times; n++) {
    uint64_t before = ascend_sim_calls();
    if (aclrtLaunchKernel(func, 1, "", 0, stream)) exit(1);
    uint64_t made = ascend_sim_calls() - before;
    if (ask) rtGetTaskIdAndStreamID(&task, &own);
    // The first launches look up the stream and create events.
    if (n < 3) continue;
    calls += made;
    least = made < least ? made : least;
    if (n % 50 == 49) aclrtSynchronizeStream(stream);
  }
  if (what) printf("%s: %d: %.1f\n", what, (int)least, (double)calls / (times - 3));
}

int main(int count, char **arguments) {
  aclrtBinHandle binary;
  aclrtStream first, second;
  int times = atoi(arguments[1]);
  if (aclInit(NULL) || aclrtSetDevice(0) || aclrtCreateStream(&first) || aclrtBinaryLoadFromData("x", 1, NULL, &binary)) return 1;
  if (aclrtBinaryGetFunction(binary, "matmul", &func)) return 1;
  launches("unasked", first, times, 0);
  launches(NULL, first, times, 0);
  launches("quiet", first, 200, 0);
  if (aclrtCreateStream(&second)) return 1;
  launches("another stream was made", first, 200, 0);
  launches("another stream", second, 200, 0);
  launches("asked", first, 200, 1);
  launches("default stream", NULL, 200, 1);
  if (aclrtSynchronizeDevice()) return 1;
  return 42;
}
