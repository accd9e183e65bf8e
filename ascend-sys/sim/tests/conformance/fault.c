/* Faults on demand. */
#include "check.h"

/* ASCEND_SIM_FAULTS=launch_host_args:2=107017,event_create:2+=207007,memcpy:1=507013 */
void faults_of_calls(void) {
  OK(aclrtSetDevice(0));
  aclrtFuncHandle func = kernel("k");
  OK(launch(func, NULL));
  IS(launch(func, NULL), 107017);
  OK(launch(func, NULL)); /* the retry */
  aclrtEvent event;
  OK(aclrtCreateEvent(&event));
  IS(aclrtCreateEventExWithFlag(&event, TIME_LINE), 207007);
  IS(aclrtCreateEvent(&event), 207007);
  IS(aclrtMemcpy(&event, 1, &func, 1, 0), 507013);
  OK(aclrtSynchronizeStream(NULL));
}

/* ASCEND_SIM_FAULTS=kernel:2=507015 */
void fault_of_a_kernel(void) {
  OK(aclrtSetDevice(0));
  aclrtFuncHandle func = kernel("k");
  aclrtEvent event = timed();
  OK(launch(func, NULL));
  OK(aclrtSynchronizeStream(NULL));
  OK(launch(func, NULL)); /* asynchronous: the launch itself succeeds */
  IS(aclrtSynchronizeStream(NULL), 507015);
  IS(launch(func, NULL), 507015); /* and it stays */
  IS(aclrtQueryEventStatus(event, &(int){0}), 507015);
  IS(aclrtSynchronizeDevice(), 507015);
  aclrtContext fresh;
  OK(aclrtCreateContext(&fresh, 0));
  OK(launch(func, NULL)); /* another context is not concerned */
  OK(aclrtSynchronizeStream(NULL));
}

/* ASCEND_SIM_FAULTS=device_lost:3=507010 ASCEND_SIM_KERNELS=k=20000 */
void fault_of_a_device(void) {
  OK(aclrtSetDevice(0));
  aclrtStream own = stream();
  aclrtFuncHandle func = kernel("k");
  aclrtEvent event = timed();
  for (int index = 0; index < 3; index++) OK(launch(func, own));
  OK(aclrtRecordEvent(event, own));
  IS(aclrtSynchronizeStream(own), 507010); /* does not hang */
  IS(aclrtSynchronizeEvent(event), 507010);
  IS(aclrtQueryEventStatus(event, &(int){0}), 507010);
  IS(launch(func, own), 507010);
  OK(aclrtResetDeviceForce(0));
  OK(aclrtSetDevice(0));
  OK(aclrtSynchronizeEventWithTimeout(event, 20000)); /* its record was dropped */
  OK(launch(func, NULL)); /* a reset brings it back */
  OK(aclrtSynchronizeStream(NULL));
}

/* ASCEND_SIM_FAULTS=slow_completion:1=300000 */
void slow_completion(void) {
  OK(aclrtSetDevice(0));
  aclrtEvent slow = timed(), quick = timed();
  uint64_t began = now_ns();
  OK(aclrtRecordEvent(slow, NULL));
  OK(aclrtRecordEvent(quick, NULL));
  OK(aclrtSynchronizeEvent(quick));
  TRUE(now_ns() - began < 300000000);
  IS(status_of(slow), 0);
  IS(aclrtSynchronizeEventWithTimeout(slow, 5), 507047);
  OK(aclrtSynchronizeEvent(slow));
  TRUE(now_ns() - began >= 300000000);
  TRUE(us_of(slow) <= us_of(quick)); /* its time is that of its record */
}
