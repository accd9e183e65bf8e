/* Kernels. */
#include "check.h"

/* Each way to launch does the kernel's work once, and not before what was queued earlier. */
CASE(launches) {
  OK(aclrtSetDevice(0));
  aclrtStream own = stream();
  aclrtFuncHandle add = kernel("sim_add_one");
  int32_t *values, back[4] = {0}, start[4] = {10, 20, 30, -1};
  OK(aclrtMalloc((void **)&values, sizeof back, 0));
  struct { void *values; uint64_t count; } args = {values, 4}, *on_device;
  OK(aclrtMalloc((void **)&on_device, sizeof args, 0));
  OK(aclrtMemcpyAsync(values, sizeof back, start, sizeof start, 1, own));
  OK(aclrtMemcpyAsync(on_device, sizeof args, &args, sizeof args, 1, own));
  OK(aclrtLaunchKernel(add, 1, on_device, sizeof args, own));
  OK(aclrtLaunchKernelWithHostArgs(add, 1, own, NULL, &args, sizeof args, NULL, 0));
  static const char stub;
  OK(rtFunctionRegister(NULL, &stub, "sim_add_one", NULL, 0));
  OK(rtKernelLaunch(&stub, 1, &args, sizeof args, NULL, own));
  OK(rtsLaunchKernelWithHostArgs(add, 1, own, NULL, &args, sizeof args, NULL, 0));
  void *ex[16] = {&args};
  OK(rtLaunchKernelByFuncHandleV3(add, 1, ex, own, NULL));
  OK(aclrtMemcpyAsync(back, sizeof back, values, sizeof back, 2, own));
  OK(aclrtSynchronizeStream(own));
  for (int index = 0; index < 4; index++) IS(back[index], start[index] + 5);
  OK(aclrtFree(values));
  OK(aclrtFree(on_device));
  IS(launch((void *)0x10, NULL), 107017);
  IS(rtKernelLaunch("nobody's", 1, NULL, 0, NULL, NULL), 507027);
}
