/* Streams. */
#include "check.h"

/* ASCEND_SIM_STREAMS=4 ASCEND_SIM_KERNELS=slow=150000 */
void streams(void) {
  OK(aclrtSetDevice(0));
  aclrtStream first = stream(), second = stream(), by_default;
  OK(aclrtCtxGetCurrentDefaultStream(&by_default));
  int32_t a, b, c;
  OK(aclrtStreamGetId(first, &a));
  OK(aclrtStreamGetId(second, &b));
  OK(aclrtStreamGetId(NULL, &c));
  TRUE(a >= 0 && a < 4 && b >= 0 && b < 4 && a != b && a != c && b != c);
  uint32_t left;
  OK(aclrtGetStreamAvailableNum(&left));
  IS(left, 1);
  stream();
  IS(aclrtCreateStream(&by_default), 207008);

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

static atomic_int late;
static void *launch_many(void *func) {
  OK(aclrtSetDevice(0));
  aclrtStream own = stream();
  aclrtEvent event = timed();
  for (int round = 0; round < 2000; round++) {
    for (int index = 0; index < 10; index++) OK(launch(func, own));
    OK(aclrtRecordEvent(event, own));
    uint64_t began = now_ns();
    if (round % 3 == 0) OK(aclrtSynchronizeStream(own));
    if (round % 3 == 1) OK(aclrtSynchronizeEvent(event));
    if (round % 3 == 1) IS(status_of(event), 1);
    if (now_ns() - began > 15000000) atomic_fetch_add(&late, 1); /* nobody woke it, or the machine is busy */
  }
  OK(aclrtDestroyStream(own));
  return NULL;
}

/* ASCEND_SIM_DEPTH=4 ASCEND_SIM_SPIN_US=0 ASCEND_SIM_KERNEL_US=0: everyone sleeps and is woken all the time. */
void crowd(void) {
  pthread_t threads[4];
  OK(aclrtSetDevice(0));
  aclrtFuncHandle func = kernel("k");
  for (int index = 0; index < 4; index++) pthread_create(&threads[index], NULL, launch_many, func);
  for (int index = 0; index < 4; index++) pthread_join(threads[index], NULL);
  TRUE(atomic_load(&late) < 800); /* of 8000 */
}
