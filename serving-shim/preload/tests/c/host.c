// A random program on the simulated runtime, determined by a seed: each thread launches, records, waits, captures, updates and fails on its own streams, and often asks for its last
// error and last task. It prints all answers. They depend neither on time nor on other threads.
//   host SEED THREADS OPERATIONS [without-records]
#define _GNU_SOURCE
#include "acl_abi.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STREAMS = 2, EVENTS = 3, MOST_THREADS = 8 };

typedef struct {
  int number;
  uint64_t state;
  aclrtContext context, other;
  aclrtStream streams[STREAMS], strange;
  aclrtEvent events[EVENTS];
  aclrtTaskGrp group;
  aclmdlRI model;
  int capturing, open, updating;  // number of the stream plus one, or 0
  char last[64];                  // the last submitted task
  int submitted, asked;           // number of submitted tasks, now and at the last query
  uint32_t task, stream;          // answer to the last query
  int launches;
  char memory[64];
  FILE *out;
  char *said;
  size_t length;
} host;

static int operations, without_records;
static pthread_barrier_t prepared, ready;
static aclrtBinHandle binary;

static unsigned draw(host *own, unsigned below) {
  own->state = own->state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(own->state >> 33) % below;
}

#define say(own, ...) fprintf((own)->out, __VA_ARGS__)

// The thread's queries about itself, sometimes in a different order or omitted.
static void ask(host *own) {
  uint32_t task = 0, stream = 0, alone = 0;
  unsigned how = draw(own, 8);
  if (how & 1) say(own, " peek %d", aclrtPeekAtLastError(0));
  if (how & 2) {
    int code = rtGetTaskIdAndStreamID(&task, &stream);
    say(own, " ids %d %s", code, own->submitted != own->asked ? "new" : task == own->task && stream == own->stream ? "same" : "moved");
    own->asked = own->submitted;
    say(own, " [%s %u %u]", own->last, stream, task);
    own->task = task;
    own->stream = stream;
    code = aclrtGetThreadLastTaskId(&alone);
    say(own, " alone %d %d", code, alone == task);
  }
  if (how == 4) say(own, " get %d", aclrtGetLastError(0));
  if (how & 1) say(own, " peek %d", aclrtPeekAtLastError(0));
  say(own, "\n");
}

// A call that submits a task if it succeeds.
static void submitted(host *own, int on, const char *what, int code) {
  int in_graph = on >= 0 && (own->capturing == on + 1 || own->updating == on + 1);
  if (code == 0) own->submitted++, snprintf(own->last, sizeof own->last, "%s", in_graph ? "graph" : what);
}

static int kernel(host *own, aclrtStream stream, int on, unsigned how) {
  char name[32];
  aclrtFuncHandle func = NULL;
  uint64_t nothing[2] = {0, 0};
  snprintf(name, sizeof name, "kernel-k%d.%d", own->number, own->launches++);
  int code = aclrtBinaryGetFunction(binary, name + 7, &func);
  if (code) say(own, "no function %d", code);
  switch (how) {
    case 0: code = aclrtLaunchKernelWithHostArgs(func, 1, stream, NULL, nothing, 16, NULL, 0); break;
    case 1: code = aclrtLaunchKernel(func, 2, nothing, 16, stream); break;
    case 2: code = rtsLaunchKernelWithHostArgs(func, 1, stream, NULL, nothing, 16, NULL, 0); break;
    default: code = aclrtLaunchKernelWithHostArgs(how == 4 ? NULL : func, how != 3, stream, NULL, nothing, 16, NULL, 0);  // or no blocks
  }
  submitted(own, on, name, code);
  return code;
}

static void operate(host *own) {
  int on = (int)draw(own, STREAMS), captured = own->capturing == on + 1;
  aclrtStream stream = own->streams[on];
  aclrtEvent event = own->events[draw(own, EVENTS)];
  unsigned what = draw(own, 26);
  int status = 0, code = -1;
  switch (what) {
    case 0: case 1: case 2: case 3: case 4: case 5: case 6: code = kernel(own, stream, on, draw(own, 3)); break;
    case 7: code = kernel(own, stream, on, 3 + draw(own, 2)); break;
    case 8: code = kernel(own, own->strange, -1, draw(own, 3)); break;
    case 9: code = kernel(own, (void *)0x10, -1, draw(own, 3)); break;
    case 10:
      code = aclrtMemsetAsync(own->memory, 64, 1, 64, stream);
      submitted(own, on, "memcpy-aclrtMemsetAsync", code);
      break;
    case 11: case 12:
      if (without_records) break;
      code = aclrtRecordEvent(event, stream);
      // A captured record of a timed event does nothing.
      if (!(captured && event == own->events[0])) submitted(own, on, "event_record-", code);
      break;
    case 13:
      if (own->capturing || without_records) break;
      code = aclrtStreamWaitEvent(stream, event);
      submitted(own, on, "event_wait-", code);
      break;
    case 14: code = aclrtSynchronizeStream(stream); break;
    case 15:
      if (!own->capturing) code = aclrtSynchronizeEvent(event);
      break;
    case 16:
      if (own->capturing || own->updating) break;
      code = aclmdlRICaptureBegin(stream, 2);
      if (code == 0) own->capturing = on + 1;
      break;
    case 17:
      if (!own->capturing) break;
      if (own->model && draw(own, 2)) say(own, "destroy %d ", aclmdlRIDestroy(own->model)), own->group = NULL;
      own->open = 0;
      code = aclmdlRICaptureEnd(own->streams[own->capturing - 1], &own->model);
      own->capturing = 0;
      break;
    case 18:
      code = aclmdlRICaptureTaskGrpBegin(stream);
      if (code == 0) own->open = on + 1;
      break;
    case 19: code = aclmdlRICaptureTaskGrpEnd(own->open ? own->streams[own->open - 1] : stream, &own->group); break;
    case 20:
      if (!own->group) break;
      code = aclmdlRICaptureTaskUpdateBegin(stream, own->group);
      if (code == 0 && own->updating) say(own, "end %d ", aclmdlRICaptureTaskUpdateEnd(stream));
      else if (code == 0) own->updating = on + 1;
      break;
    case 21:
      code = aclmdlRICaptureTaskUpdateEnd(own->updating ? own->streams[own->updating - 1] : stream);
      if (own->updating) own->updating = 0;
      break;
    case 22:
      if (!own->model) break;
      code = aclmdlRIExecuteAsync(own->model, stream);
      if (!captured) submitted(own, on, "replay-", code);
      break;
    case 23:
      if (own->capturing || own->updating) break;
      say(own, "destroy %d ", aclrtDestroyStream(stream));
      code = aclrtCreateStream(&own->streams[on]);
      break;
    case 24:
      say(own, "other %d", aclrtSetCurrentContext(own->other));
      code = kernel(own, stream, -1, 0);
      say(own, " %d strange", code);
      code = kernel(own, own->strange, -1, 0);
      say(own, " %d bad", code);
      code = aclrtSetCurrentContext((void *)0x20);
      say(own, " %d back", code);
      code = aclrtSetCurrentContext(own->context);
      break;
    default:
      if (own->capturing) break;
      code = aclrtSynchronizeStream(stream) | aclrtSynchronizeStream(own->streams[!on]);
      if (code == 0 && !without_records) code = aclrtQueryEventStatus(own->events[1], &status);
      say(own, "status %d ", status);
  }
  say(own, "%d: %u on %d: %d", own->number, what, on, code);
  ask(own);
}

static void *run(void *argument) {
  host *own = argument;
  ask(own);
  int code = kernel(own, NULL, -1, 0);  // without a context
  say(own, "none %d", code);
  ask(own);
  code = aclrtSetDevice(0) | aclrtCreateContext(&own->other, own->number % 2) | aclrtCreateStream(&own->strange);
  code |= aclrtSetDevice(own->number % 2) | aclrtGetCurrentContext(&own->context);
  for (int n = 0; n < STREAMS; n++) code |= aclrtCreateStream(&own->streams[n]);
  for (int n = 0; n < EVENTS; n++) code |= aclrtCreateEventExWithFlag(&own->events[n], n ? SYNC : TIME_LINE);
  say(own, "ready %d\n", code);
  pthread_barrier_wait(&prepared);
  pthread_barrier_wait(&ready);
  for (int n = 0; n < operations; n++) operate(own);
  if (own->updating) say(own, "end %d\n", aclmdlRICaptureTaskUpdateEnd(own->streams[own->updating - 1]));
  if (own->capturing) say(own, "end %d\n", aclmdlRICaptureEnd(own->streams[own->capturing - 1], &own->model));
  for (int n = 0; n < STREAMS; n++) say(own, "last %d\n", aclrtSynchronizeStream(own->streams[n]));
  ask(own);
  say(own, "strange %d", aclrtSetCurrentContext(own->other));
  say(own, " %d\n", aclrtSynchronizeStream(own->strange));
  return NULL;
}

int main(int count, char **arguments) {
  static host hosts[MOST_THREADS];
  pthread_t threads[MOST_THREADS];
  uint64_t seed = strtoull(arguments[1], NULL, 10);
  int number = atoi(arguments[2]);
  operations = atoi(arguments[3]);
  without_records = count > 4;
  pthread_barrier_init(&prepared, NULL, 2);
  pthread_barrier_init(&ready, NULL, (unsigned)number);
  if (aclInit(NULL) || aclrtSetDevice(0) || aclrtBinaryLoadFromData("x", 1, NULL, &binary)) return 1;
  for (int n = 0; n < number; n++) {
    hosts[n].number = n;
    hosts[n].state = seed * 1000 + (uint64_t)n;
    snprintf(hosts[n].last, sizeof hosts[n].last, "none");
    hosts[n].out = open_memstream(&hosts[n].said, &hosts[n].length);
    pthread_create(&threads[n], NULL, run, &hosts[n]);
    pthread_barrier_wait(&prepared);
  }
  for (int n = 0; n < number; n++) {
    pthread_join(threads[n], NULL);
    fclose(hosts[n].out);
    fputs(hosts[n].said, stdout);
  }
  printf("reset %d %d\n", aclrtResetDeviceForce(0), aclrtPeekAtLastError(0));
  return 42;
}
