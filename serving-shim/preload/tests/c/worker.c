// An unmodified worker, on the simulated runtime: kernels on two streams, copies, collectives, a captured graph and its replays. It prints what it computed.
// The first argument is "seen", or "hidden" to begin and end its capture without the wrappers.
#define _GNU_SOURCE
#include "acl_abi.h"
#include "ok.h"
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

static aclrtFuncHandle kernel(const char *name) {
  static aclrtBinHandle binary;
  aclrtFuncHandle func;
  if (!binary) OK(aclrtBinaryLoadFromData("x", 1, NULL, &binary));
  OK(aclrtBinaryGetFunction(binary, name, &func));
  return func;
}

// Like the vendor's operators: a launch that is refused because of its handle is repeated once.
static aclError launch(aclrtFuncHandle func, uint32_t blocks, aclrtStream stream, void *args, size_t bytes) {
  aclError code = aclrtLaunchKernelWithHostArgs(func, blocks, stream, NULL, args, bytes, NULL, 0);
  return code == 107017 ? aclrtLaunchKernelWithHostArgs(func, blocks, stream, NULL, args, bytes, NULL, 0) : code;
}

// Finds a function of the runtime with the C library's own dlsym, which no preloaded library replaces.
static void *hidden(const char *name) {
  void *(*real)(void *, const char *) = dlvsym(RTLD_DEFAULT, "dlsym", "GLIBC_2.2.5");
  if (!real) real = dlvsym(RTLD_DEFAULT, "dlsym", "GLIBC_2.17");
  return real(dlopen("libascendcl.so", RTLD_LAZY | RTLD_NOLOAD), name);
}

int work(const char *how) {
  int is_hidden = !strcmp(how, "hidden");
  __typeof__(&aclmdlRICaptureBegin) begin = is_hidden ? hidden("aclmdlRICaptureBegin") : aclmdlRICaptureBegin;
  __typeof__(&aclmdlRICaptureEnd) end = is_hidden ? hidden("aclmdlRICaptureEnd") : aclmdlRICaptureEnd;
  OK(aclInit(NULL));
  OK(aclrtSetDevice(0));
  aclrtStream streams[2];
  for (int n = 0; n < 2; n++) OK(aclrtCreateStream(&streams[n]));
  aclrtFuncHandle add = kernel("sim_add_one"), mat_mul = kernel("MatMulV2_8f9d3c5e7a1b2d4f6081a2b3c4d5e6f7_1");
  int32_t *values, back[4] = {0}, start[4] = {10, 20, 30, -1};
  OK(aclrtMalloc((void **)&values, sizeof back, 0));
  struct { void *values; uint64_t count; } args = {values, 4};
  OK(aclrtMemcpyAsync(values, sizeof back, start, sizeof start, 1, streams[0]));
  for (int n = 0; n < 100; n++) {
    OK(launch(add, 4, streams[0], &args, sizeof args));
    OK(launch(mat_mul, 8, streams[1], "", 0));
  }
  OK(aclrtSynchronizeStream(streams[1]));
  aclmdlRI graph;
  OK(begin(streams[0], 2));
  for (int n = 0; n < 5; n++) OK(launch(add, 4, streams[0], &args, sizeof args));
  OK(end(streams[0], &graph));
  usleep(is_hidden ? 2000000 : 50000); // before the replays, so that the end of a hidden capture is detected
  for (int n = 0; n < 3; n++) OK(aclmdlRIExecuteAsync(graph, streams[0]));
  OK(aclrtMemcpyAsync(back, sizeof back, values, sizeof back, 2, streams[0]));
  OK(aclrtSynchronizeDevice());
  for (int n = 0; n < 4; n++) printf("%d\n", back[n]);
  usleep(50000); // graphs must outlive their replays
  OK(aclmdlRIDestroy(graph));
  for (int n = 0; n < 2; n++) OK(aclrtDestroyStream(streams[n]));
  OK(aclrtResetDevice(0));
  OK(aclFinalize());
  fflush(stdout);
  return 42;
}
