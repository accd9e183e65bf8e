/* Calls that would break the vendor's MSPTI. */
#include "check.h"

typedef void (*requested)(uint8_t **buffer, size_t *size, size_t *records);
typedef void (*completed)(uint8_t *buffer, size_t size, size_t valid);
int msptiSubscribe(void **subscriber, void *callback, void *data);
int msptiUnsubscribe(void *subscriber);
int msptiActivityRegisterCallbacks(requested request, completed complete);
int msptiActivityEnable(int kind);
int msptiActivityDisable(int kind);

enum { KERNEL = 2 };

static void *called_late;

static void call_late(void) { msptiUnsubscribe(called_late); }

/* A call after MSPTI has taken itself down: the handler that makes it was registered before. */
CASE(mspti_called_late) {
  OK(aclrtSetDevice(0));
  atexit(call_late);
  OK(msptiSubscribe(&called_late, NULL, NULL));
}

static void no_buffer(uint8_t **buffer, size_t *size, size_t *count) {
  *buffer = NULL;
  *size = *count = 0;
}

static void complete(uint8_t *buffer, size_t size, size_t valid) {
  TRUE(buffer == NULL && size == 0 && valid == 0);
}

CASE(mspti_without_a_buffer) {
  OK(aclrtSetDevice(0));
  void *subscriber;
  OK(msptiSubscribe(&subscriber, NULL, NULL));
  OK(msptiActivityRegisterCallbacks(no_buffer, complete));
  OK(msptiActivityEnable(KERNEL));
  OK(launch(kernel("k"), NULL));
  OK(aclrtSynchronizeStream(NULL));
  OK(msptiActivityDisable(KERNEL));
}
