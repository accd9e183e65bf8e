/* Declarations of the functions that the conformance program calls, from the published signatures of the Ascend runtime: only names, types and numbers. */
#ifndef ACL_ABI_H
#define ACL_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int aclError;
typedef void *aclrtContext, *aclrtStream, *aclrtEvent, *aclrtBinHandle, *aclrtFuncHandle, *aclmdlRI, *aclrtTaskGrp;
typedef struct { int id; uint32_t value[4]; } aclrtLaunchKernelAttr;
typedef struct { aclrtLaunchKernelAttr *attrs; size_t numAttrs; } aclrtLaunchKernelCfg;
typedef struct { uint32_t addrOffset, dataOffset; } aclrtPlaceHolderInfo;

enum { TIME_LINE = 0x8, SYNC = 0x1 };

aclError aclInit(const char *config);
aclError aclFinalize(void);

aclError aclrtSetDevice(int32_t device);
aclError aclrtResetDevice(int32_t device);
aclError aclrtResetDeviceForce(int32_t device);
aclError aclrtGetDeviceCount(uint32_t *count);
aclError aclrtGetPhyDevIdByUserDevId(int32_t user, int32_t *physical);
aclError aclrtGetLogicDevIdByUserDevId(int32_t user, int32_t *logic);
aclError aclrtSynchronizeDevice(void);

aclError aclrtCreateContext(aclrtContext *context, int32_t device);
aclError aclrtDestroyContext(aclrtContext context);
aclError aclrtSetCurrentContext(aclrtContext context);
aclError aclrtGetCurrentContext(aclrtContext *context);

aclError aclrtCreateStream(aclrtStream *stream);
aclError aclrtDestroyStream(aclrtStream stream);
aclError aclrtSynchronizeStream(aclrtStream stream);
aclError aclrtStreamQuery(aclrtStream stream, int *status);
aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event);
aclError aclrtGetThreadLastTaskId(uint32_t *id);
aclError aclrtPeekAtLastError(int level);
aclError aclrtGetLastError(int level);

aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flag);
aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flag);
aclError aclrtDestroyEvent(aclrtEvent event);
aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream);
aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream);
aclError aclrtQueryEventStatus(aclrtEvent event, int *status);
aclError aclrtQueryEventWaitStatus(aclrtEvent event, int *status);
aclError aclrtSynchronizeEvent(aclrtEvent event);
aclError aclrtEventElapsedTime(float *ms, aclrtEvent start, aclrtEvent end);
aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t *us);

aclError aclrtBinaryLoadFromData(const void *data, size_t length, const void *options, aclrtBinHandle *binary);
aclError aclrtBinaryGetFunction(aclrtBinHandle binary, const char *name, aclrtFuncHandle *func);
aclError aclrtGetFunctionName(aclrtFuncHandle func, uint32_t length, char *name);
aclError aclrtLaunchKernel(aclrtFuncHandle func, uint32_t blocks, const void *args, size_t size, aclrtStream stream);
aclError aclrtLaunchKernelWithHostArgs(aclrtFuncHandle func, uint32_t blocks, aclrtStream stream, aclrtLaunchKernelCfg *cfg, void *args, size_t size, aclrtPlaceHolderInfo *holders, size_t count);

aclError aclmdlRICaptureBegin(aclrtStream stream, int mode);
aclError aclmdlRICaptureEnd(aclrtStream stream, aclmdlRI *model);
aclError aclmdlRICaptureGetInfo(aclrtStream stream, int *status, aclmdlRI *model);
aclError aclmdlRIExecuteAsync(aclmdlRI model, aclrtStream stream);
aclError aclmdlRIDestroy(aclmdlRI model);
aclError aclmdlRICaptureTaskGrpBegin(aclrtStream stream);
aclError aclmdlRICaptureTaskGrpEnd(aclrtStream stream, aclrtTaskGrp *group);
aclError aclmdlRICaptureTaskUpdateBegin(aclrtStream stream, aclrtTaskGrp group);
aclError aclmdlRICaptureTaskUpdateEnd(aclrtStream stream);

aclError aclrtMalloc(void **memory, size_t bytes, int policy);
aclError aclrtMemcpyAsync(void *dst, size_t room, const void *src, size_t count, int kind, aclrtStream stream);
aclError aclrtMemsetAsync(void *memory, size_t room, int32_t value, size_t count, aclrtStream stream);

int32_t rtFunctionRegister(void *binary, const void *stub, const char *name, const void *info, uint32_t mode);
int32_t rtKernelLaunch(const void *stub, uint32_t blocks, void *args, uint32_t size, void *sm_desc, aclrtStream stream);
int32_t rtsLaunchKernelWithHostArgs(aclrtFuncHandle func, uint32_t blocks, aclrtStream stream, void *cfg, void *args, uint32_t size, void *holders, uint32_t count);
int32_t rtGetTaskIdAndStreamID(uint32_t *task, uint32_t *stream);

#ifdef __cplusplus
}
#endif

#endif
