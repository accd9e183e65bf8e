/* MSPTI: one subscriber, records in buffers that are given back late, and what is dropped. */
#include "check.h"

/* A record of a kernel, as the public header packs it. */
typedef struct {
  int kind;
  uint64_t start, end;
  uint32_t device, stream;
  uint64_t correlation;
  const char *type, *name;
} __attribute__((__packed__)) __attribute__((aligned(8))) kernel_record;

typedef void (*requested)(uint8_t **buffer, size_t *size, size_t *records);
typedef void (*completed)(uint8_t *buffer, size_t size, size_t valid);
int msptiSubscribe(void **subscriber, void *callback, void *data);
int msptiUnsubscribe(void *subscriber);
int msptiActivityRegisterCallbacks(requested request, completed complete);
int msptiActivityEnable(int kind);
int msptiActivityDisable(int kind);
int msptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record);
int msptiActivityFlushAll(uint32_t flag);
int msptiActivityFlushPeriod(uint32_t ms);

enum { KERNEL = 2, HCCL = 4, ROOM = 1 << 16 };

static size_t room;
static atomic_int asked, given, seen;
static atomic_ulong asking, giving;
static kernel_record records[64];

static void request(uint8_t **buffer, size_t *size, size_t *count) {
  asked++;
  asking = (unsigned long)pthread_self();
  *buffer = malloc(room);
  *size = room;
  *count = 0;
}

static void complete(uint8_t *buffer, size_t size, size_t valid) {
  given++;
  giving = (unsigned long)pthread_self();
  IS(size, room);
  void *record = NULL;
  IS(msptiActivityGetNextRecord(buffer, 0, &record), 3);
  IS(msptiActivityGetNextRecord(buffer + 1, valid, &record), 1);
  while (msptiActivityGetNextRecord(buffer, valid, &record) == 0) records[seen++ % 64] = *(kernel_record *)record;
  free(buffer);
}

static uint64_t realtime_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void run(aclrtStream own, int times) {
  for (int index = 0; index < times; index++) OK(launch(kernel("k"), own));
  OK(aclrtSynchronizeStream(own));
}

/* ASCEND_SIM_KERNELS=k=100 */
CASE(mspti) {
  IS(sizeof(kernel_record), 56);
  OK(aclrtSetDevice(0));
  aclrtStream own = stream();
  int32_t id;
  OK(aclrtStreamGetId(own, &id));
  void *subscriber = NULL;
  IS(msptiSubscribe(NULL, NULL, NULL), 1);
  OK(msptiSubscribe(&subscriber, NULL, NULL));
  IS(msptiActivityRegisterCallbacks(NULL, complete), 1);
  OK(msptiActivityRegisterCallbacks(request, complete));
  IS(msptiActivityEnable(99), 1);
  IS(msptiActivityEnable(HCCL), 6);
  OK(msptiActivityFlushPeriod(1));
  run(own, 5); /* before it is enabled nothing has a record */
  OK(msptiActivityEnable(KERNEL));
  room = ROOM;
  uint64_t began = realtime_ns();
  run(own, 2);
  uint64_t ended = realtime_ns();
  OK(msptiActivityDisable(KERNEL));
  IS(seen, 0); /* not before it is flushed */
  OK(msptiActivityFlushAll(0));
  IS(asked, 1);
  IS(given, 1);
  IS(giving, (unsigned long)pthread_self());
  IS(seen, 2);
  for (int index = 0; index < 2; index++) {
    kernel_record *record = &records[index];
    IS(record->kind, KERNEL);
    IS(record->device, 0);
    IS(record->stream, id);
    TRUE(strcmp(record->name, "k") == 0);
    TRUE(record->end - record->start >= 100000 - 20);
    TRUE(record->start >= began - 20000 && record->end <= ended + 20000);
  }
  int later = records[1].start > records[0].start; /* the newest comes first, unless the log was read in between */
  IS(records[later].correlation, records[!later].correlation + 1);

  /* What is nearly full goes by itself, on another thread. */
  OK(msptiActivityEnable(KERNEL));
  room = 560;
  seen = given = 0;
  run(own, 20);
  for (int waited = 0; given < 2 && waited < 1000; waited++) usleep(5000);
  TRUE(given >= 2 && giving != (unsigned long)pthread_self());
  OK(msptiActivityDisable(KERNEL));
  OK(msptiActivityFlushAll(0));
  IS(seen, 20);

  /* Without room records are dropped. */
  OK(msptiActivityEnable(KERNEL));
  room = 55;
  asked = seen = 0;
  run(own, 4);
  OK(msptiActivityDisable(KERNEL));
  OK(msptiActivityFlushAll(0));
  IS(seen, 0);
  IS(asked, 1);
}

static void *called_late;

static void call_late(void) { msptiUnsubscribe(called_late); }

/* A call after MSPTI has taken itself down: the handler that makes it was registered before. */
CASE(mspti_called_late) {
  OK(aclrtSetDevice(0));
  atexit(call_late);
  OK(msptiSubscribe(&called_late, NULL, NULL));
}

static void no_buffer(uint8_t **buffer, size_t *size, size_t *count) {
  *buffer = NULL;
  *size = *count = 0;
}

CASE(mspti_without_a_buffer) {
  OK(aclrtSetDevice(0));
  void *subscriber;
  OK(msptiSubscribe(&subscriber, NULL, NULL));
  OK(msptiActivityRegisterCallbacks(no_buffer, complete));
  OK(msptiActivityEnable(KERNEL));
  run(stream(), 1);
  OK(msptiActivityDisable(KERNEL));
}
