// Every function that is interposed: its library, result, name and types. One letter for each type:
// P a pointer nobody looks at, R a handle of the rt level, U uint32_t, I int32_t, L uint64_t or size_t, S a C string, H where a handle is written, W where a number is, N names of an AI CPU launch, B items of a batch and C how many, T an element type, E a binary, Z sizes of a batch and D how many.
#ifndef INTERFACE_H
#define INTERFACE_H
#include <stddef.h>
#include <stdint.h>

typedef struct { const char *so, *kernel, *op; } aicpu_names;
typedef struct { int type; void *buffer; uint64_t count; int element; uint32_t rank; } batch_item;
typedef struct { uint32_t magic, version; const void *data; uint64_t length; } binary;

typedef void *type_P;
typedef void *type_R;
typedef uint32_t type_U;
typedef int32_t type_I;
typedef uint64_t type_L;
typedef const char *type_S;
typedef void **type_H;
typedef uint32_t *type_W;
typedef const aicpu_names *type_N;
typedef const batch_item *type_B;
typedef int32_t type_T;
typedef uint32_t type_C;
typedef const binary *type_E;
typedef const size_t *type_Z;
typedef size_t type_D;
typedef void type_V;

#define ACL(F) \
  F(I, aclrtSetDevice, 1, I) \
  F(I, aclrtLaunchKernel, 5, P, U, P, L, P) \
  F(I, aclrtLaunchKernelV2, 6, P, U, P, L, P, P) \
  F(I, aclrtLaunchKernelWithConfig, 6, P, U, P, P, P, P) \
  F(I, aclrtLaunchKernelWithHostArgs, 8, P, U, P, P, P, L, P, L) \
  F(I, aclrtBinaryGetFunction, 3, P, S, H) \
  F(I, aclrtBinaryGetFunctionByEntry, 3, P, L, H) \
  F(I, aclmdlRICaptureBegin, 2, P, I) \
  F(I, aclmdlRICaptureEnd, 2, P, H) \
  F(I, aclmdlRIExecute, 2, P, I) \
  F(I, aclmdlRIExecuteAsync, 2, P, P) \
  F(I, aclmdlRIDestroy, 1, P) \
  F(I, aclmdlRICaptureTaskUpdateBegin, 2, P, P) \
  F(I, aclmdlRICaptureTaskUpdateEnd, 1, P) \
  F(I, aclrtPeekAtLastError, 1, I) \
  F(I, aclrtGetLastError, 1, I) \
  F(I, aclrtGetThreadLastTaskId, 1, W) \
  F(I, aclmdlExecute, 3, U, P, P) \
  F(I, aclmdlExecuteV2, 5, U, P, P, P, P) \
  F(I, aclmdlExecuteAsync, 4, U, P, P, P) \
  F(I, aclmdlExecuteAsyncV2, 5, U, P, P, P, P) \
  F(I, aclopExecuteV2, 9, S, I, P, P, I, P, P, P, P) \
  F(I, aclopCompileAndExecute, 12, S, I, P, P, I, P, P, P, I, I, S, P) \
  F(I, aclopCompileAndExecuteV2, 12, S, I, P, P, I, P, P, P, I, I, S, P) \
  F(I, aclrtMemcpy, 5, P, L, P, L, I) \
  F(I, aclrtMemcpyAsync, 6, P, L, P, L, I, P) \
  F(I, aclrtMemset, 4, P, L, I, L) \
  F(I, aclrtMemsetAsync, 5, P, L, I, L, P) \
  F(I, aclrtMemcpyAsyncWithCondition, 6, P, L, P, L, I, P) \
  F(I, aclrtMemcpyBatchAsync, 10, P, P, P, Z, D, P, P, L, P, P) \
  F(I, aclrtMemcpyBatch, 9, P, P, P, Z, D, P, P, L, P) \
  F(I, aclrtCmoAsync, 4, P, L, I, P) \
  F(I, aclrtReduceAsync, 7, P, P, L, I, I, P, P) \
  F(I, aclrtValueWrite, 4, P, L, U, P) \
  F(I, aclrtValueWait, 4, P, L, U, P) \
  F(I, aclrtLaunchHostFunc, 3, P, P, P) \
  F(I, aclrtSynchronizeStream, 1, P) \
  F(I, aclrtSynchronizeStreamWithTimeout, 2, P, I) \
  F(I, aclrtSynchronizeDevice, 0) \
  F(I, aclrtSynchronizeEvent, 1, P) \
  F(I, aclrtDestroyContext, 1, P) \
  F(I, aclrtDestroyStream, 1, P) \
  F(I, aclrtDestroyStreamForce, 1, P) \
  F(I, aclrtResetDevice, 1, I) \
  F(I, aclrtResetDeviceForce, 1, I) \
  F(I, aclFinalize, 0)

// Wrapped for those alone who find it by dlsym, since not every CANN has it.
#define ASKED(F) F(I, aclmdlRIUpdate, 1, P)

#define RT(F) \
  F(I, rtGetTaskIdAndStreamID, 2, W, W) \
  F(I, rtFunctionRegister, 5, P, P, S, P, U) \
  F(I, rtRegisterAllKernel, 2, E, H) \
  F(I, rtKernelLaunch, 6, P, U, P, U, P, P) \
  F(I, rtKernelLaunchWithFlag, 6, P, U, P, P, P, U) \
  F(I, rtKernelLaunchWithFlagV2, 7, P, U, P, P, P, U, P) \
  F(I, rtKernelLaunchWithHandle, 7, P, L, U, P, P, P, P) \
  F(I, rtKernelLaunchWithHandleV2, 7, P, L, U, P, P, P, P) \
  F(I, rtKernelLaunchEx, 4, P, U, U, P) \
  F(I, rtKernelLaunchFwk, 5, S, P, U, U, P) \
  F(I, rtVectorCoreKernelLaunch, 7, P, U, P, P, P, U, P) \
  F(I, rtVectorCoreKernelLaunchWithHandle, 7, P, L, U, P, P, P, P) \
  F(I, rtLaunchKernelByFuncHandle, 4, R, U, P, P) \
  F(I, rtLaunchKernelByFuncHandleV2, 5, R, U, P, P, P) \
  F(I, rtLaunchKernelByFuncHandleV3, 5, R, U, P, P, P) \
  F(I, rtAicpuKernelLaunchExWithArgs, 7, U, S, U, P, P, P, U) \
  F(I, rtAicpuKernelLaunchWithFlag, 6, N, U, P, P, P, U) \
  F(I, rtCpuKernelLaunchWithFlag, 7, S, S, U, P, P, P, U) \
  F(I, rtFusionLaunch, 3, P, P, P) \
  F(I, rtFftsPlusTaskLaunch, 2, P, P) \
  F(I, rtFftsPlusTaskLaunchWithFlag, 3, P, P, U) \
  F(I, rtModelExecute, 3, P, P, U) \
  F(I, rtsLaunchKernelWithHostArgs, 8, R, U, P, P, P, U, P, U) \
  F(I, rtsLaunchKernelWithConfig, 6, R, U, P, P, P, P) \
  F(I, rtsLaunchKernelWithDevArgs, 7, R, U, P, P, P, U, P) \
  F(I, rtsLaunchCpuKernel, 5, R, U, P, P, P)

#define HCCL(F) \
  F(I, HcclAllReduce, 7, P, P, L, T, I, P, P) \
  F(I, HcclReduceScatter, 7, P, P, L, T, I, P, P) \
  F(I, HcclReduce, 8, P, P, L, T, I, U, P, P) \
  F(I, HcclAllGather, 6, P, P, L, T, P, P) \
  F(I, HcclBroadcast, 6, P, L, T, U, P, P) \
  F(I, HcclScatter, 7, P, P, L, T, U, P, P) \
  F(I, HcclSend, 6, P, L, T, U, P, P) \
  F(I, HcclRecv, 6, P, L, T, U, P, P) \
  F(I, HcclAlltoAll, 8, P, L, T, P, L, T, P, P) \
  F(I, HcclAlltoAllV, 10, P, P, P, T, P, P, P, T, P, P) \
  F(I, HcclAlltoAllVC, 7, P, P, T, P, T, P, P) \
  F(I, HcclAllGatherV, 8, P, L, P, P, P, T, P, P) \
  F(I, HcclReduceScatterV, 9, P, P, P, P, L, T, I, P, P) \
  F(I, HcclBarrier, 2, P, P) \
  F(I, HcclBatchSendRecv, 4, B, C, P, P)

#define MSTX(F) \
  F(V, mstxMarkA, 2, S, P) \
  F(L, mstxRangeStartA, 2, S, P) \
  F(V, mstxRangeEnd, 1, L) \
  F(P, mstxDomainCreateA, 1, S) \
  F(V, mstxDomainMarkA, 3, P, S, P) \
  F(L, mstxDomainRangeStartA, 3, P, S, P) \
  F(V, mstxDomainRangeEnd, 2, P, L) \
  F(V, mstxDomainDestroy, 1, P)

#define PROFILER(F) \
  F(I, aclprofStart, 1, P) \
  F(I, aclprofStop, 1, P)

#define EVERYTHING(F) ACL(F) RT(F) HCCL(F) MSTX(F) PROFILER(F)

// Lists of arguments, each with its number from the end: WITH of each, and between two of them BETWEEN.
#define LIST_0(...)
#define LIST_1(WITH, BETWEEN, A) WITH(A, 1)
#define LIST_2(WITH, BETWEEN, A, ...) WITH(A, 2) BETWEEN() LIST_1(WITH, BETWEEN, __VA_ARGS__)
#define LIST_3(WITH, BETWEEN, A, ...) WITH(A, 3) BETWEEN() LIST_2(WITH, BETWEEN, __VA_ARGS__)
#define LIST_4(WITH, BETWEEN, A, ...) WITH(A, 4) BETWEEN() LIST_3(WITH, BETWEEN, __VA_ARGS__)
#define LIST_5(WITH, BETWEEN, A, ...) WITH(A, 5) BETWEEN() LIST_4(WITH, BETWEEN, __VA_ARGS__)
#define LIST_6(WITH, BETWEEN, A, ...) WITH(A, 6) BETWEEN() LIST_5(WITH, BETWEEN, __VA_ARGS__)
#define LIST_7(WITH, BETWEEN, A, ...) WITH(A, 7) BETWEEN() LIST_6(WITH, BETWEEN, __VA_ARGS__)
#define LIST_8(WITH, BETWEEN, A, ...) WITH(A, 8) BETWEEN() LIST_7(WITH, BETWEEN, __VA_ARGS__)
#define LIST_9(WITH, BETWEEN, A, ...) WITH(A, 9) BETWEEN() LIST_8(WITH, BETWEEN, __VA_ARGS__)
#define LIST_10(WITH, BETWEEN, A, ...) WITH(A, 10) BETWEEN() LIST_9(WITH, BETWEEN, __VA_ARGS__)
#define LIST_11(WITH, BETWEEN, A, ...) WITH(A, 11) BETWEEN() LIST_10(WITH, BETWEEN, __VA_ARGS__)
#define LIST_12(WITH, BETWEEN, A, ...) WITH(A, 12) BETWEEN() LIST_11(WITH, BETWEEN, __VA_ARGS__)
#define NOTHING()
#define COMMA() ,
#define PARAMETER(A, n) type_##A a##n
#define GIVE(A, n) given_##A(n)

#define DECLARE(R, name, n, ...) type_##R name(LIST_##n(PARAMETER, COMMA, __VA_ARGS__));

// What the fake answers next; `fake_answer` is in libfake_answer.so, which all fakes share.
typedef struct { int result; int error; } answer;
extern answer fake_answer;

#endif
