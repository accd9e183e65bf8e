/* What all cases are written with. */
#ifndef CHECK_H
#define CHECK_H

#define _GNU_SOURCE
#include "acl_abi.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The case that runs. */
extern const char *current;

/* The two sides must be the same number. */
#define IS(call, expected)                                                                           \
  do {                                                                                               \
    long long is = (long long)(call), should = (long long)(expected);                                \
    if (is != should) {                                                                              \
      fprintf(stderr, "%s:%d: %s: %s is %lld, expected %lld\n", __FILE__, __LINE__, current, #call, is, should); \
      exit(1);                                                                                       \
    }                                                                                                \
  } while (0)
#define OK(call) IS(call, 0)
#define TRUE(condition) IS(!!(condition), 1)

static inline uint64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static inline aclrtBinHandle binary(void) {
  aclrtBinHandle handle;
  OK(aclrtBinaryLoadFromData("x", 1, NULL, &handle));
  return handle;
}

static inline aclrtFuncHandle kernel(const char *name) {
  aclrtFuncHandle func;
  OK(aclrtBinaryGetFunction(binary(), name, &func));
  return func;
}

static inline aclrtStream stream(void) {
  aclrtStream made;
  OK(aclrtCreateStream(&made));
  return made;
}

static inline aclrtEvent timed(void) {
  aclrtEvent event;
  OK(aclrtCreateEventExWithFlag(&event, TIME_LINE));
  return event;
}

static inline aclError launch(aclrtFuncHandle func, aclrtStream on) {
  return aclrtLaunchKernelWithHostArgs(func, 1, on, NULL, "", 0, NULL, 0);
}

static inline uint64_t us_of(aclrtEvent event) {
  uint64_t us;
  OK(aclrtEventGetTimestamp(event, &us));
  return us;
}

static inline int status_of(aclrtEvent event) {
  int status;
  OK(aclrtQueryEventStatus(event, &status));
  return status;
}

static inline aclmdlRI captured(aclrtStream own, int times) {
  aclmdlRI model;
  OK(aclmdlRICaptureBegin(own, 0));
  for (int index = 0; index < times; index++) OK(launch(kernel("k"), own));
  OK(aclmdlRICaptureEnd(own, &model));
  TRUE(model != NULL);
  return model;
}

void context(void);
void init(void);
void devices(void);
void listeners(void);
void streams(void);
void crowd(void);
void events(void);
void stream_waits(void);
void stream_dropped(void);
void device_clock(void);
void elapsed(void);
void elapsed_wraps(void);
void event_pool(void);
void kernels(void);
void launches(void);
void memory(void);
void callbacks(void);
void collectives(void);
void capture(void);
void capture_broken(void);
void capture_modes(void);
void capture_streams(void);
void capture_dropped(void);
void replay(void);
void capture_unseen(void);
void task_group(void);
void last_error(void);
void last_task(void);
void faults_of_calls(void);
void fault_of_a_kernel(void);
void fault_of_a_device(void);
void slow_completion(void);
void through_rt_never(void);
void through_rt_when_old(void);
void work(void);
void mspti(void);
void mspti_refused(void);
void mspti_called_late(void);
void mspti_without_a_buffer(void);
void forked(void);
void endless(void);
void speed(void);

#endif
