/* Captures and graphs. */
#include "check.h"

CASE(capture) {
  OK(aclrtSetDevice(0));
  aclrtStream own = stream();
  aclrtEvent ex = timed(), plain;
  aclmdlRI model = own, during;
  int status;
  OK(aclrtCreateEventWithFlag(&plain, TIME_LINE));
  IS(aclmdlRICaptureBegin(NULL, 0), 107031);
  IS(aclmdlRICaptureBegin(own, 9), 107000);
  IS(aclmdlRICaptureEnd(own, &model), 107029);
  OK(aclmdlRICaptureGetInfo(own, &status, &during));
  IS(status, 0);

  /* Recording a timed event does not change a capture, and the event keeps its old timestamp. */
  OK(aclrtRecordEvent(ex, own));
  OK(aclrtSynchronizeStream(own));
  uint64_t stale = us_of(ex);
  OK(aclmdlRICaptureBegin(own, 0));
  IS(aclmdlRICaptureBegin(own, 0), 107027);
  OK(aclmdlRICaptureGetInfo(own, &status, &during));
  IS(status, 1);
  usleep(2000);
  OK(aclrtRecordEvent(ex, own));
  OK(launch(kernel("k"), own));
  OK(aclrtRecordEvent(ex, own));
  IS(status_of(ex), 1);
  IS(us_of(ex), stale);
  IS(aclrtRecordEvent(plain, own), 207000);
  IS(aclrtDestroyStream(own), 107027);
  IS(aclmdlRIDestroy(during), 107026);
  IS(aclmdlRIExecuteAsync(during, NULL), 107026);
  OK(aclmdlRICaptureEnd(own, &model));
  TRUE(model == during);
}

static void broken_by(const char *name, aclrtStream own, int query, aclError expected) {
  aclmdlRI model;
  int status;
  current = name;
  OK(aclmdlRICaptureBegin(own, 0));
  OK(launch(kernel("k"), own));
  if (query == 0) IS(aclrtStreamQuery(own, &status), expected);
  if (query == 1) IS(aclrtSynchronizeStream(own), expected);
  if (query == 2) IS(aclrtSynchronizeDevice(), expected);
  OK(aclmdlRICaptureGetInfo(own, &status, &model));
  IS(status, 2);
  IS(launch(kernel("k"), own), 507903);
  IS(aclmdlRICaptureEnd(own, &model), 507903);
  TRUE(model == NULL);
  OK(launch(kernel("k"), own)); /* the stream is no longer captured */
  OK(aclrtSynchronizeStream(own));
}

CASE(capture_broken) {
  OK(aclrtSetDevice(0));
  aclrtStream own = stream();
  broken_by("query", own, 0, 107027);
  broken_by("synchronize", own, 1, 107027);
  broken_by("synchronize device", own, 2, 107030);
}

CASE(capture_streams) {
  OK(aclrtSetDevice(0));
  aclrtStream first = stream(), second = stream();
  aclrtEvent fork, join, outside;
  aclmdlRI model;
  int status;
  OK(aclrtCreateEventExWithFlag(&fork, SYNC));
  OK(aclrtCreateEventExWithFlag(&join, SYNC));
  OK(aclrtCreateEventExWithFlag(&outside, SYNC));
  for (int joins = 1; joins >= 0; joins--) {
    OK(aclmdlRICaptureBegin(first, 0));
    OK(aclrtRecordEvent(fork, first));
    OK(aclrtStreamWaitEvent(second, fork));
    OK(aclmdlRICaptureGetInfo(second, &status, &model));
    IS(status, 1);
    OK(launch(kernel("k"), second));
    if (joins) {
      OK(aclrtRecordEvent(join, second));
      OK(aclrtStreamWaitEvent(first, join));
      IS(aclmdlRICaptureEnd(second, &model), 107036);
      OK(aclmdlRICaptureEnd(first, &model));
    } else {
      IS(aclmdlRICaptureEnd(first, &model), 107025);
    }
  }
  /* A captured event cannot be queried, and a query breaks the capture. */
  OK(aclmdlRICaptureBegin(first, 0));
  OK(aclrtRecordEvent(fork, first));
  IS(aclrtQueryEventStatus(fork, &status), 107028);
  IS(aclrtSynchronizeEvent(fork), 107028);
  uint64_t us;
  IS(aclrtEventGetTimestamp(fork, &us), 107028);
  IS(aclmdlRICaptureEnd(first, &model), 507903);
  OK(aclrtQueryEventStatus(fork, &status)); /* the event is no longer captured */
  /* A captured stream cannot wait for an event outside the capture. */
  OK(aclrtRecordEvent(outside, second));
  OK(aclmdlRICaptureBegin(first, 0));
  IS(aclrtStreamWaitEvent(first, outside), 107024);
  IS(aclmdlRICaptureEnd(first, &model), 507903);
}
