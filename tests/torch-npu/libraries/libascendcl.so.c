/* Functions that torch_npu looks up by name in libascendcl.so and the simulated runtime lacks. */
#include <stddef.h>
#include <stdint.h>

int aclrtMalloc(void **memory, size_t bytes, int policy);

int aclrtSetDeviceSatMode(int mode) { return 0; }
int aclrtSetOpExecuteTimeOut(uint32_t seconds) { return 0; }
int aclrtSetOpWaitTimeout(uint32_t seconds) { return 0; }
int aclrtSetSysParamOpt(int option, int64_t value) { return 0; }
int aclrtMallocAlign32(void **memory, size_t bytes, int policy) { return aclrtMalloc(memory, bytes, policy); }
