/* Contexts, devices, initialisation. */
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

static int finalizes;
static aclError on_finalize(void *data) {
  TRUE(data == &finalizes);
  finalizes++;
  return 0;
}

CASE(init) {
  IS(aclFinalize(), 100001);
  OK(aclFinalizeCallbackRegister(0xFFFF, on_finalize, &finalizes));
  OK(aclInit(NULL));
  IS(aclInit(NULL), 100002);
  OK(aclFinalize());
  IS(finalizes, 1);
  char version[128];
  OK(aclsysGetVersionStr("runtime", version));
  TRUE(strcmp(version, "9.1.0") == 0);
  TRUE(strncmp(aclrtGetSocName(), "Ascend", 6) == 0);
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

static int device_states[8], device_calls, stream_states[8], stream_calls;
static void on_device(int32_t device, int state, void *data) {
  IS(device, 1);
  TRUE(data == device_states);
  device_states[device_calls++] = state;
}
static void on_stream(aclrtStream on, int state, void *data) {
  TRUE(on != NULL && data == stream_states);
  OK(aclrtStreamGetId(on, &(int32_t){0})); /* it is there still */
  stream_states[stream_calls++] = state;
}

CASE(listeners) {
  OK(aclrtRegDeviceStateCallback("test", on_device, device_states));
  OK(aclrtRegStreamStateCallback("test", on_stream, stream_states));
  OK(aclrtSetDevice(1));
  aclrtStream own = stream();
  OK(aclrtDestroyStream(own));
  OK(aclrtRegStreamStateCallback("test", NULL, NULL));
  stream();
  OK(aclrtResetDevice(1));
  IS(device_calls, 4);
  for (int state = 0; state < 4; state++) IS(device_states[state], state);
  IS(stream_calls, 2);
  IS(stream_states[0], 1);
  IS(stream_states[1], 2);

  /* Of streams that go with their context or device, too. */
  OK(aclrtSetDevice(1));
  OK(aclrtRegStreamStateCallback("test", on_stream, stream_states));
  stream();
  OK(aclrtSynchronizeStream(NULL)); /* makes the default stream */
  OK(aclrtResetDevice(1));
  aclrtContext context;
  OK(aclrtCreateContext(&context, 1));
  stream();
  OK(aclrtDestroyContext(context));
  const int expected[] = {1, 2, 1, 1, 2, 2, 1, 2};
  IS(stream_calls, 8);
  for (int call = 0; call < 8; call++) IS(stream_states[call], expected[call]);
}
