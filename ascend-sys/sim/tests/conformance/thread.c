/* The last error and the last task of a thread. */
#include "check.h"

static void *nothing_failed_here(void *unused) {
  IS(aclrtPeekAtLastError(0), 0);
  uint32_t task, own;
  OK(rtGetTaskIdAndStreamID(&task, &own)); /* needs no context */
  IS(task, 0xFFFFFFFF); /* nothing was submitted */
  IS(own, 0xFFFF);
  return unused;
}

CASE(last_error) {
  aclrtStream none;
  IS(aclrtPeekAtLastError(0), 0);
  IS(aclrtCreateStream(&none), 107002);
  IS(aclrtPeekAtLastError(0), 107002);
  OK(aclrtSetDevice(0)); /* success does not clear it */
  IS(aclrtPeekAtLastError(0), 107002);
  IS(aclrtSynchronizeStream((void *)0x10), 107017); /* the newer error replaces it */
  pthread_t thread;
  pthread_create(&thread, NULL, nothing_failed_here, NULL);
  pthread_join(thread, NULL);
  IS(aclrtGetLastError(0), 107017);
  IS(aclrtGetLastError(0), 0);
  IS(aclrtPeekAtLastError(1), 100000);
  IS(aclrtPeekAtLastError(0), 0); /* ACL's own errors are not stored */
}

/* ASCEND_SIM_SOC */
CASE(last_task) {
  OK(aclrtSetDevice(0));
  int in_process = strcmp(getenv("ASCEND_SIM_SOC"), "950") == 0;
  aclrtStream streams[] = {stream(), stream()};
  aclrtEvent event = timed();
  uint32_t task, same, own;
  for (unsigned index = 0; index < 6; index++) {
    aclrtStream on = streams[index % 2];
    OK(index < 4 ? launch(kernel("k"), on) : aclrtRecordEvent(event, on)); /* a record is a task too */
    OK(aclrtGetThreadLastTaskId(&task));
    IS(task, in_process ? index + 1 : index / 2 + 1);
  }
  IS(launch(kernel("k"), (void *)0x10), 107017); /* nothing is submitted */
  OK(rtGetTaskIdAndStreamID(&same, &own));
  IS(same, task);
}
