// Streams are destroyed, and new ones reuse their handles and ids on another device: each launch must be recorded on the right stream. ASCEND_SIM_REUSE=1
#include "acl_abi.h"
#include "ok.h"
#include <pthread.h>
#include <unistd.h>

static aclrtBinHandle binary;
static aclrtStream stream;

static void launches(const char *name) {
  aclrtFuncHandle func;
  OK(aclrtBinaryGetFunction(binary, name, &func));
  for (int n = 0; n < 20; n++) OK(aclrtLaunchKernel(func, 1, "", 0, stream));
  OK(aclrtSynchronizeStream(stream));
  usleep(50000); // until their slices are written, for which destroying a stream would not wait
}

static void made(int device) {
  OK(aclrtSetDevice(device));
  OK(aclrtCreateStream(&stream));
}

static void *elsewhere(void *old) {
  OK(aclrtSetDevice(0));
  OK(aclrtDestroyStream(stream));
  made(1);
  if (stream != old) exit(2);
  return NULL;
}

int main(void) {
  OK(aclInit(NULL));
  OK(aclrtSetDevice(1));
  OK(aclrtSetDevice(0));
  OK(aclrtBinaryLoadFromData("x", 1, NULL, &binary));

  made(0);
  launches("first-0");
  pthread_t thread;
  pthread_create(&thread, NULL, elsewhere, stream);
  pthread_join(thread, NULL);
  OK(aclrtSetDevice(1));
  launches("by_another_thread-1");
  OK(aclrtDestroyStream(stream));

  aclrtContext context, other;
  OK(aclrtCreateContext(&context, 0));
  OK(aclrtCreateStream(&stream));
  void *old = stream;
  launches("of_a_context-0");
  OK(aclrtDestroyContext(context));
  OK(aclrtCreateContext(&other, 1));
  OK(aclrtCreateStream(&stream));
  if (stream != old || other != context) return 2;
  launches("of_another_context-1");
  OK(aclrtDestroyContext(other));

  made(0);
  old = stream;
  launches("before_a_reset-0");
  OK(aclrtResetDeviceForce(0));
  made(1);
  if (stream != old) return 2;
  launches("after_a_reset-1");

  /* The same stream from a context of its device, and without a context. */
  OK(aclrtSetDevice(0));
  aclrtFuncHandle func;
  OK(aclrtBinaryGetFunction(binary, "refused", &func));
  printf("%d\n", aclrtLaunchKernel(func, 1, "", 0, stream));
  OK(aclrtSetDevice(1));
  launches("back-1");
  return 42;
}
