/* What a thread did last. */
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
  OK(aclrtSetDevice(0)); /* success leaves it */
  IS(aclrtPeekAtLastError(0), 107002);
  IS(aclrtSynchronizeStream((void *)0x10), 107017); /* the last one counts */
  pthread_t thread;
  pthread_create(&thread, NULL, nothing_failed_here, NULL);
  pthread_join(thread, NULL);
  IS(aclrtGetLastError(0), 107017);
  IS(aclrtGetLastError(0), 0);
  IS(aclrtPeekAtLastError(1), 100000);
  IS(aclrtPeekAtLastError(0), 0); /* an error of ACL's own */
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
    OK(index < 4 ? launch(kernel("k"), on) : aclrtRecordEvent(event, on)); /* is a task too */
    OK(aclrtGetThreadLastTaskId(&task));
    IS(task, in_process ? index + 1 : index / 2 + 1);
  }
  IS(launch(kernel("k"), (void *)0x10), 107017); /* submits nothing */
  OK(rtGetTaskIdAndStreamID(&same, &own));
  IS(same, task);
}
