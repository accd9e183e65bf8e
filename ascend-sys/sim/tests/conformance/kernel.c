/* Kernels, memory, callbacks, collectives. */
#include "check.h"

CASE(kernels) {
  OK(aclrtSetDevice(0));
  aclrtBinHandle loaded = binary();
  aclrtFuncHandle func, same, keyed;
  OK(aclrtBinaryGetFunction(loaded, "MatMul_a1b2_0", &func));
  OK(aclrtBinaryGetFunction(loaded, "MatMul_a1b2_0", &same));
  TRUE(func == same);
  OK(aclrtBinaryGetFunctionByEntry(loaded, 7, &keyed));
  char name[64];
  OK(aclrtGetFunctionName(func, sizeof name, name));
  TRUE(strcmp(name, "MatMul_a1b2_0") == 0);
  OK(aclrtGetFunctionName(func, 4, name));
  TRUE(strcmp(name, "Mat") == 0);
  OK(aclrtGetFunctionName(keyed, sizeof name, name));
  TRUE(strcmp(name, "sim_kernel_7") == 0);
  int64_t type;
  OK(aclrtGetFunctionAttribute(func, 1, &type));
  IS(type, 3);
  IS(aclrtGetFunctionName((void *)0x10, sizeof name, name), 107017);
  IS(launch((void *)0x10, NULL), 107017);
  IS(aclrtLaunchKernel(func, 0, NULL, 0, NULL), 107000);
  IS(aclrtBinaryGetFunction(NULL, "k", &func), 107017);
  IS(rtKernelLaunch("nobody's", 1, NULL, 0, NULL, NULL), 507027);
  struct { uint32_t magic, version; const void *data; uint64_t length; } whole = {0x43554245, 0, "binary", 6};
  void *registered;
  OK(rtRegisterAllKernel(&whole, &registered));
  OK(rtKernelLaunchWithHandleV2(registered, 7, 1, NULL, NULL, NULL, NULL));
  whole.length = 0;
  IS(rtRegisterAllKernel(&whole, &registered), 107000);
  OK(rtKernelLaunchWithHandleV2(loaded, 7, 1, NULL, NULL, NULL, NULL));
  OK(aclrtLaunchKernelWithConfig(func, 8, NULL, NULL, NULL, NULL));
  OK(aclrtSynchronizeStream(NULL));
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
  OK(aclrtLaunchKernelV2(add, 1, on_device, sizeof args, NULL, own));
  OK(aclrtLaunchKernelWithHostArgs(add, 1, own, NULL, &args, sizeof args, NULL, 0));
  static const char stub;
  OK(rtFunctionRegister(NULL, &stub, "sim_add_one", NULL, 0));
  OK(rtKernelLaunch(&stub, 1, &args, sizeof args, NULL, own));
  OK(rtsLaunchKernelWithHostArgs(add, 1, own, NULL, &args, sizeof args, NULL, 0));
  void *ex[16] = {&args};
  OK(rtLaunchKernelByFuncHandleV3(add, 1, ex, own, NULL));
  OK(aclrtMemcpyAsync(back, sizeof back, values, sizeof back, 2, own));
  OK(aclrtSynchronizeStream(own));
  for (int index = 0; index < 4; index++) IS(back[index], start[index] + 6);
  OK(aclrtFree(values));
  OK(aclrtFree(on_device));
}

CASE(memory) {
  OK(aclrtSetDevice(0));
  char *device, *host, text[8] = "";
  size_t before, after, total;
  OK(aclrtGetMemInfo(0, &before, &total));
  OK(aclrtMalloc((void **)&device, 8, 0));
  OK(aclrtGetMemInfo(0, &after, &total));
  TRUE(after + 8 == before && before <= total);
  OK(aclrtMallocHost((void **)&host, 8));
  IS(aclrtMalloc((void **)&device, 0, 0), 107000);
  OK(aclrtMemset(device, 8, 'x', 8));
  OK(aclrtMemcpy(host, 8, device, 8, 2));
  TRUE(memcmp(host, "xxxxxxxx", 8) == 0);
  OK(aclrtMemsetAsync(device, 8, 'y', 3, NULL));
  OK(aclrtMemcpyAsync(text, 8, device, 4, 2, NULL));
  OK(aclrtSynchronizeStream(NULL));
  TRUE(strcmp(text, "yyyx") == 0);
  OK(aclrtCmoAsync(device, 8, 0, NULL));
  void *to[2] = {text + 2, text + 3}, *from[2] = {device + 3, device};
  size_t room[2] = {6, 5}, sizes[2] = {1, 2}, failed;
  OK(aclrtMemcpyBatchAsync(to, room, from, sizes, 2, NULL, NULL, 0, &failed, NULL));
  OK(aclrtSynchronizeStream(NULL));
  TRUE(strcmp(text, "yyxyy") == 0);
  sizes[1] = 1;
  memset(text, 0, sizeof text);
  OK(aclrtMemcpyBatch(to, room, from, sizes, 2, NULL, NULL, 0, &failed));
  TRUE(strcmp(text + 2, "xy") == 0);
  uint64_t value;
  OK(aclrtValueWrite(&value, 42, 0, NULL));
  OK(aclrtSynchronizeStream(NULL));
  IS(value, 42);
  IS(aclrtValueWrite(NULL, 42, 0, NULL), 107000);
  IS(aclrtValueWait(&value, 42, 1, NULL), 207000);
  IS(aclrtMemcpy(host, 4, device, 8, 2), 107000);
  IS(aclrtMemcpyAsync(host, 8, NULL, 8, 2, NULL), 107000);
  IS(aclrtFreeHost(device), 107000);
  OK(aclrtFree(device));
  IS(aclrtFree(device), 107000);
  OK(aclrtFreeHost(host));
}

CASE(collectives) {
  OK(aclrtSetDevice(1));
  int32_t ids[] = {0, 1};
  HcclComm comms[2];
  OK(HcclCommInitAll(2, ids, comms));
  uint32_t rank, ranks;
  char name[128];
  OK(HcclGetRankId(comms[1], &rank));
  OK(HcclGetRankSize(comms[1], &ranks));
  OK(HcclGetCommName(comms[1], name));
  IS(rank, 1);
  IS(ranks, 2);
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
