/* Streams. */
#include "check.h"

/* ASCEND_SIM_KERNELS=slow=150000 */
CASE(streams) {
  OK(aclrtSetDevice(0));
  aclrtStream first = stream(), second = stream(), by_default;
  OK(aclrtCtxGetCurrentDefaultStream(&by_default));
  int32_t a, b, c;
  OK(aclrtStreamGetId(first, &a));
  OK(aclrtStreamGetId(second, &b));
  OK(aclrtStreamGetId(NULL, &c));
  TRUE(a >= 0 && a < 4 && b >= 0 && b < 4 && a != b && a != c && b != c);
  int made = 3;
  while (aclrtCreateStream(&by_default) == 0) made++;
  IS(aclrtPeekAtLastError(0), 207008);
  IS(made, 1984);

  aclrtFuncHandle slow = kernel("slow");
  int status;
  uint64_t began = now_ns();
  OK(launch(slow, first));
  OK(launch(slow, first));
  TRUE(now_ns() - began < 150000000); /* a launch does not wait for its kernel */
  OK(aclrtStreamQuery(first, &status));
  IS(status, 1);
  OK(aclrtStreamQuery(second, &status));
  IS(status, 0);
  IS(aclrtSynchronizeStreamWithTimeout(first, 5), 507046);
  uint32_t task;
  OK(aclrtGetThreadLastTaskId(&task));
  IS(task, 2);
  OK(aclrtSynchronizeStreamWithTimeout(first, -1));
  TRUE(now_ns() - began >= 300000000); /* in order, one after another */
  OK(aclrtStreamQuery(first, &status));
  IS(status, 0);
  OK(launch(slow, second));
  OK(aclrtDestroyStream(second)); /* waits */
  TRUE(now_ns() - began >= 450000000);
  IS(aclrtStreamQuery(second, &status), 107017);
  OK(launch(slow, first));
  began = now_ns();
  OK(aclrtDestroyStreamForce(first)); /* does not */
  TRUE(now_ns() - began < 150000000);
  stream(); /* their ids are free again */
  stream();
}
