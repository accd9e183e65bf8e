/* Kernels and collectives. */
#include "check.h"

CASE(kernels) {
  OK(aclrtSetDevice(0));
  aclrtBinHandle loaded = binary();
  aclrtFuncHandle func, same;
  OK(aclrtBinaryGetFunction(loaded, "MatMul_a1b2_0", &func));
  OK(aclrtBinaryGetFunction(loaded, "MatMul_a1b2_0", &same));
  TRUE(func == same);
  char name[64];
  OK(aclrtGetFunctionName(func, sizeof name, name));
  TRUE(strcmp(name, "MatMul_a1b2_0") == 0);
  OK(aclrtGetFunctionName(func, 4, name));
  TRUE(strcmp(name, "Mat") == 0);
  IS(aclrtGetFunctionName((void *)0x10, sizeof name, name), 107017);
  IS(launch((void *)0x10, NULL), 107017);
  IS(aclrtLaunchKernel(func, 0, NULL, 0, NULL), 107000);
  IS(aclrtBinaryGetFunction(NULL, "k", &func), 107017);
  IS(rtKernelLaunch("nobody's", 1, NULL, 0, NULL, NULL), 507027);
}

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
}

CASE(collectives) {
  OK(aclrtSetDevice(1));
  int32_t ids[] = {0, 1};
  HcclComm comms[2];
  OK(HcclCommInitAll(2, ids, comms));
  char name[128];
  OK(HcclGetCommName(comms[1], name));
  TRUE(strlen(name) > 0);
  aclrtStream own = stream();
  int32_t send[2] = {1, 2}, recv[4] = {0};
  OK(HcclAllReduce(send, recv, 2, 2, 0, comms[1], own));
  OK(HcclAllGather(send, recv, 2, 2, comms[1], own));
  OK(HcclBarrier(comms[1], own));
  OK(aclrtSynchronizeStream(own));
  TRUE(recv[0] == 1 && recv[1] == 2 && recv[2] == 1 && recv[3] == 2);
  TRUE(HcclBarrier(NULL, own) != 0);
  TRUE(HcclAllReduce(send, recv, 2, 99, 0, comms[1], own) != 0);
  OK(HcclCommDestroy(comms[1]));
  TRUE(HcclBarrier(comms[1], own) != 0);
}
