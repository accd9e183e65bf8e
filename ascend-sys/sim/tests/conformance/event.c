/* Events and clocks. */
#include "check.h"

/* ASCEND_SIM_KERNELS=slow=150000 */
CASE(events) {
  OK(aclrtSetDevice(0));
  aclrtStream own = stream();
  aclrtFuncHandle slow = kernel("slow");
  aclrtEvent ex = timed(), plain;
  OK(aclrtCreateEventWithFlag(&plain, TIME_LINE));
  int status;
  uint64_t us;
  float ms;

  /* Never recorded. */
  IS(status_of(ex), 1);
  IS(status_of(plain), 0);
  IS(aclrtEventGetTimestamp(ex, &us), 507000);
  IS(aclrtEventElapsedTime(&ms, ex, ex), 507000);
  OK(aclrtSynchronizeEvent(ex));

  /* Forbidden on Ex events. */
  IS(aclrtQueryEventWaitStatus(ex, &status), 207000);
  IS(aclrtResetEvent(ex, own), 207000);

  /* Not complete. */
  OK(aclrtRecordEvent(ex, own));
  OK(aclrtSynchronizeEvent(ex));
  uint64_t before = us_of(ex);
  OK(launch(slow, own));
  OK(aclrtRecordEvent(ex, own));
  OK(aclrtRecordEvent(plain, own));
  IS(status_of(ex), 0);
  IS(status_of(plain), 0);
  IS(aclrtEventGetTimestamp(ex, &us), 107006);
  IS(aclrtEventElapsedTime(&ms, ex, plain), 107006);
  OK(aclrtSynchronizeEvent(ex));
  IS(status_of(ex), 1);
  OK(aclrtSynchronizeEvent(plain));
  IS(status_of(plain), 1);
  TRUE(us_of(ex) - before >= 150000);
  TRUE(us_of(ex) == us_of(ex)); /* the timestamp stays the same */

  /* Destroyed before it has completed. */
  OK(launch(slow, own));
  OK(aclrtRecordEvent(ex, own));
  uint64_t began = now_ns();
  OK(aclrtDestroyEvent(ex));
  TRUE(now_ns() - began < 150000000);
  IS(aclrtDestroyEvent(ex), 107000);
  IS(aclrtQueryEventStatus(ex, &status), 107000);
  OK(aclrtSynchronizeStream(own));
}
