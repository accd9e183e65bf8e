/* A device's runtime in small: what a launch needs of libascendcl.so. What is put into its stream has happened at once; its clock is an hour ahead. As the
 * vendor's it is of no use in the child of a fork: there it ends the process. */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { OK = 0, INVALID = 107000, NOT_RECORDED = 507000, DEVICE = 0, PHYSICAL = 3, STREAM = 7, HOUR = 3600 };
typedef int32_t aclError;

static char context, stream;
static pid_t owner;

__attribute__((constructor)) static void remember_owner(void) {
  owner = getpid();
}

struct event {
  uint64_t ns;
};

static void check_owner(void) {
  if (getpid() != owner) abort();
}

static uint64_t device_ns(void) {
  check_owner();
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)(now.tv_sec + HOUR) * 1000000000u + (uint64_t)now.tv_nsec;
}

#define FUNCTION(name, ...) \
  aclError name(__VA_ARGS__); \
  aclError name(__VA_ARGS__)

FUNCTION(aclrtGetDevice, int32_t *device) {
  *device = DEVICE;
  return OK;
}

FUNCTION(aclrtGetPhyDevIdByUserDevId, int32_t user, int32_t *physical) {
  *physical = PHYSICAL;
  return user == DEVICE ? OK : INVALID;
}

FUNCTION(aclrtGetCurrentContext, void **current) {
  *current = &context;
  return OK;
}

FUNCTION(aclrtSetCurrentContext, void *chosen) {
  return chosen == &context ? OK : INVALID;
}

FUNCTION(aclrtCtxGetCurrentDefaultStream, void **chosen) {
  *chosen = &stream;
  return OK;
}

FUNCTION(aclrtCreateStream, void **created) {
  *created = malloc(1);
  return OK;
}

FUNCTION(aclrtDestroyStream, void *created) {
  free(created);
  return OK;
}

FUNCTION(aclrtStreamGetId, void *of, int32_t *id) {
  *id = of == &stream ? STREAM : STREAM + 1;
  return OK;
}

FUNCTION(aclmdlRICaptureGetInfo, void *of, int32_t *status, void **graph) {
  (void)of;
  *status = 0;
  *graph = NULL;
  return OK;
}

FUNCTION(aclrtCreateEventExWithFlag, void **created, uint32_t flag) {
  *created = calloc(1, sizeof(struct event));
  return flag == 8 ? OK : INVALID;
}

FUNCTION(aclrtDestroyEvent, void *event) {
  check_owner();
  free(event);
  return OK;
}

FUNCTION(aclrtRecordEvent, void *event, void *into) {
  (void)into;
  ((struct event *)event)->ns = device_ns();
  return OK;
}

FUNCTION(aclrtQueryEventStatus, void *event, int32_t *status) {
  (void)event;
  check_owner();
  *status = 1;
  return OK;
}

FUNCTION(aclrtEventGetTimestamp, void *event, uint64_t *us) {
  *us = ((struct event *)event)->ns / 1000;
  return *us > 0 ? OK : NOT_RECORDED;
}

FUNCTION(aclrtEventElapsedTime, float *ms, void *start, void *end) {
  *ms = (float)((double)(((struct event *)end)->ns - ((struct event *)start)->ns) / 1e6);
  return OK;
}
