/* Injected faults. */
#include "check.h"

/* ASCEND_SIM_FAULTS=kernel:2=507015 */
CASE(fault_of_a_kernel) {
  OK(aclrtSetDevice(0));
  aclrtFuncHandle func = kernel("k");
  aclrtEvent event = timed();
  OK(launch(func, NULL));
  OK(aclrtSynchronizeStream(NULL));
  OK(launch(func, NULL)); /* asynchronous: the launch itself succeeds */
  IS(aclrtSynchronizeStream(NULL), 507015);
  IS(launch(func, NULL), 507015); /* the error is permanent */
  IS(aclrtQueryEventStatus(event, &(int){0}), 507015);
  IS(aclrtSynchronizeDevice(), 507015);
  aclrtContext fresh;
  OK(aclrtCreateContext(&fresh, 0));
  OK(launch(func, NULL)); /* another context is not affected */
  OK(aclrtSynchronizeStream(NULL));
}

/* ASCEND_SIM_FAULTS=device_lost:3=507010 ASCEND_SIM_KERNELS=k=20000 */
CASE(fault_of_a_device) {
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
  OK(aclrtSynchronizeEvent(event)); /* its record was dropped */
  OK(launch(func, NULL)); /* a reset makes the device work again */
  OK(aclrtSynchronizeStream(NULL));
}
