/* The rt level below ACL. */
#include "check.h"

/* Stands in for a preload of the rt level. */
static atomic_int rt_calls;
int32_t rtLaunchKernelByFuncHandleV3(aclrtFuncHandle func, uint32_t blocks, const void *args, aclrtStream on, const void *cfg) {
  int32_t (*next)(aclrtFuncHandle, uint32_t, const void *, aclrtStream, const void *) =
      (int32_t(*)(aclrtFuncHandle, uint32_t, const void *, aclrtStream, const void *))dlsym(RTLD_NEXT, "rtLaunchKernelByFuncHandleV3");
  atomic_fetch_add(&rt_calls, 1);
  return next(func, blocks, args, on, cfg);
}

/* ASCEND_SIM_OLD=1 */
CASE(through_rt_when_old) {
  OK(aclrtSetDevice(0));
  int32_t *value;
  OK(aclrtMalloc((void **)&value, sizeof *value, 0));
  OK(aclrtMemset(value, sizeof *value, 0, sizeof *value));
  struct { void *values; uint64_t count; } args = {value, 1};
  aclrtFuncHandle add = kernel("sim_add_one");
  OK(aclrtLaunchKernelWithHostArgs(add, 1, NULL, NULL, &args, sizeof args, NULL, 0));
  OK(aclrtLaunchKernel(add, 1, &args, sizeof args, NULL));
  OK(aclrtSynchronizeStream(NULL));
  IS(*value, 2);
  IS(atomic_load(&rt_calls), 2);
}
