/* Events and clocks. */
#include "check.h"

/* ASCEND_SIM_KERNELS=slow=150000 */
CASE(events) {
  OK(aclrtSetDevice(0));
  aclrtStream own = stream();
  aclrtFuncHandle slow = kernel("slow");
  aclrtEvent ex = timed(), plain, untimed;
  OK(aclrtCreateEventWithFlag(&plain, TIME_LINE));
  OK(aclrtCreateEventExWithFlag(&untimed, SYNC));
  IS(aclrtCreateEventExWithFlag(&untimed, 0x1000), 107000);
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
  TRUE(us_of(ex) == us_of(ex)); /* stays */

  /* Not timed. */
  OK(aclrtRecordEvent(untimed, own));
  OK(aclrtSynchronizeEvent(untimed));
  IS(aclrtEventGetTimestamp(untimed, &us), 107006);
  IS(aclrtEventElapsedTime(&ms, untimed, ex), 107006);

  /* A reset makes a plain event one that was not recorded. */
  OK(aclrtResetEvent(plain, own));
  OK(aclrtSynchronizeStream(own));
  IS(status_of(plain), 0);
  IS(aclrtEventGetTimestamp(plain, &us), 507000);

  /* Recorded, reset and recorded again before the device has come to any of it: the last record counts. */
  OK(launch(slow, own));
  OK(aclrtRecordEvent(plain, own));
  OK(aclrtResetEvent(plain, own));
  OK(aclrtRecordEvent(plain, own));
  IS(status_of(plain), 0);
  OK(aclrtSynchronizeEvent(plain));
  IS(status_of(plain), 1);
  us = us_of(plain);
  OK(aclrtStreamWaitEvent(own, plain));
  OK(aclrtSynchronizeStreamWithTimeout(own, 20000));
  OK(aclrtRecordEvent(plain, own));
  OK(aclrtSynchronizeEvent(plain));
  TRUE(us_of(plain) >= us);

  /* Destroyed while it is under way. */
  OK(launch(slow, own));
  OK(aclrtRecordEvent(ex, own));
  uint64_t began = now_ns();
  OK(aclrtDestroyEvent(ex));
  TRUE(now_ns() - began < 150000000);
  IS(aclrtDestroyEvent(ex), 107000);
  IS(aclrtQueryEventStatus(ex, &status), 107000);
  OK(aclrtSynchronizeStream(own));
}

/* ASCEND_SIM_KERNELS=slow=150000 */
CASE(stream_waits) {
  OK(aclrtSetDevice(0));
  aclrtStream first = stream(), second = stream();
  aclrtEvent done, after = timed(), end = timed(), never;
  OK(aclrtCreateEventWithFlag(&done, SYNC | TIME_LINE));
  OK(aclrtCreateEventWithFlag(&never, SYNC));
  OK(aclrtStreamWaitEvent(second, never)); /* holds nobody up */
  OK(aclrtSynchronizeStream(second));
  OK(launch(kernel("slow"), first));
  OK(aclrtRecordEvent(done, first));
  OK(aclrtStreamWaitEvent(second, done));
  int status;
  OK(aclrtQueryEventWaitStatus(done, &status));
  IS(status, 1);
  OK(aclrtRecordEvent(after, second));
  OK(aclrtSynchronizeStream(second));
  OK(aclrtQueryEventWaitStatus(done, &status));
  IS(status, 0);
  OK(aclrtRecordEvent(end, first));
  OK(aclrtSynchronizeDevice());
  float ms;
  OK(aclrtEventElapsedTime(&ms, done, after));
  TRUE(ms >= 0.0f && ms < 100.0f);
}

/* Holds a stream up until the host opens it. */
struct gate {
  atomic_int entered, open;
};
static void pass(void *data) {
  struct gate *gate = data;
  atomic_store(&gate->entered, 1);
  while (!atomic_load(&gate->open)) usleep(1000);
}
static void closed(struct gate *gate, aclrtStream on) {
  OK(aclrtLaunchHostFunc(on, pass, gate));
}
static void reached(struct gate *gate) {
  while (!atomic_load(&gate->entered)) usleep(1000);
}

/* Streams are taken away with records and waits in them: nobody waits for those. */
CASE(stream_dropped) {
  OK(aclrtSetDevice(0));
  aclrtStream gone = stream(), other = stream();
  struct gate gate = {0};
  aclrtEvent queued = timed();
  uint64_t us;

  /* A record that the device has not looked at. */
  closed(&gate, gone);
  reached(&gate);
  OK(aclrtRecordEvent(queued, gone));
  OK(aclrtStreamWaitEvent(other, queued));
  OK(aclrtDestroyStreamForce(gone));
  OK(aclrtSynchronizeStreamWithTimeout(other, 20000));
  OK(aclrtSynchronizeEvent(queued));
  IS(status_of(queued), 1);
  IS(aclrtEventGetTimestamp(queued, &us), 507000);
  atomic_store(&gate.open, 1);
}
