/* Contexts and devices. */
#include "check.h"

static void *call_without_context(void *out) {
  *(aclError *)out = aclrtCreateStream(&(aclrtStream){0});
  return NULL;
}

CASE(context) {
  aclrtStream none, first, other;
  aclrtEvent event;
  int32_t device;
  IS(aclrtCreateStream(&none), 107002);
  IS(aclrtCreateEventExWithFlag(&event, TIME_LINE), 107002);
  IS(aclrtSynchronizeStream(NULL), 107002);
  IS(aclrtGetDevice(&device), 107002);
  IS(aclrtSetDevice(99), 107001);
  IS(aclrtSetDevice(-1), 107001);
  OK(aclrtSetDevice(0));
  OK(aclrtGetDevice(&device));
  IS(device, 0);
  first = stream();
  aclrtContext primary, second;
  OK(aclrtGetCurrentContext(&primary));
  OK(aclrtCreateContext(&second, 1));
  OK(aclrtGetDevice(&device));
  IS(device, 1);
  other = stream();
  event = timed();
  IS(aclrtSynchronizeStream(first), 107003);
  IS(aclrtRecordEvent(event, first), 107003);
  IS(launch(kernel("k"), first), 107003);
  OK(aclrtSynchronizeStream(other));
  OK(aclrtSetCurrentContext(primary));
  OK(aclrtSynchronizeStream(first));
  IS(aclrtSynchronizeStream((void *)0x1234), 107017);
  aclError elsewhere;
  pthread_t thread;
  pthread_create(&thread, NULL, call_without_context, &elsewhere);
  pthread_join(thread, NULL);
  IS(elsewhere, 107002);
  OK(aclrtDestroyContext(second));
  TRUE(aclrtSetCurrentContext(second) != 0);
  OK(aclrtResetDevice(0));
  IS(aclrtCreateStream(&none), 107002);
  TRUE(strstr(aclGetRecentErrMsg(), "107002") != NULL);
}

/* ASCEND_RT_VISIBLE_DEVICES=5,2 */
CASE(devices) {
  uint32_t count;
  int32_t id;
  OK(aclrtGetDeviceCount(&count));
  IS(count, 2);
  OK(aclrtGetLogicDevIdByUserDevId(1, &id));
  IS(id, 2);
  OK(aclrtGetPhyDevIdByUserDevId(0, &id));
  IS(id, 5);
  IS(aclrtGetPhyDevIdByUserDevId(2, &id), 107001);
  IS(aclrtSetDevice(2), 107001);
}
