/* Macros and functions for all cases. */
#ifndef CHECK_H
#define CHECK_H

#define _GNU_SOURCE
#include "acl_abi.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Name of the running case. */
extern const char *current;

/* Checks that two numbers are equal. */
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

/* Defines a case, which is selected by its name. */
void add_case(const char *name, void (*run)(void));
#define CASE(name)                                                                                  \
  static void name(void);                                                                           \
  __attribute__((constructor)) static void add_##name(void) { add_case(#name, name); }              \
  static void name(void)

#endif
