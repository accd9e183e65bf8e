/* Work to look at from outside: its truth, and what a fork leaves of it. */
#include "check.h"

#include <sys/wait.h>

/* ASCEND_SIM_KERNELS="k=3000,zero=0"; for the truth: four streams' worth of everything. */
CASE(work) {
  OK(aclrtSetDevice(0));
  aclrtStream own = stream();
  aclrtEvent event = timed();
  char byte = 1, to = 0;
  aclmdlRI model = captured(own, 2);
  for (int index = 0; index < 3; index++) OK(launch(kernel("k"), own));
  OK(aclrtRecordEvent(event, own));
  OK(aclrtMemcpyAsync(&to, 1, &byte, 1, 0, own));
  OK(aclmdlRIExecuteAsync(model, own));
  OK(aclrtSynchronizeStream(own));
  printf("%llu\n", (unsigned long long)us_of(event));
  fflush(stdout);
}

static atomic_int held = 1;
static void hold(void *entered) {
  atomic_store((atomic_int *)entered, 1);
  while (atomic_load(&held)) usleep(1000);
}

/* ASCEND_SIM_KERNELS=zero=0: children that end while the truth has lines of one stream, and is being written by another. */
CASE(forked) {
  OK(aclrtSetDevice(0));
  aclrtStream own = stream(), busy = stream();
  aclrtFuncHandle func = kernel("zero");
  atomic_int entered = 0;
  for (int index = 0; index < 3; index++) OK(launch(func, own));
  OK(aclrtLaunchHostFunc(own, hold, &entered));
  while (!atomic_load(&entered)) usleep(1000);
  for (int child = 0; child < 20; child++) {
    for (int index = 0; index < 1000; index++) OK(launch(func, busy));
    pid_t pid = fork();
    TRUE(pid >= 0);
    if (pid == 0) exit(0); /* with all that is registered for an exit */
    int status = -1, waited = 0;
    while (waitpid(pid, &status, WNOHANG) == 0 && ++waited < 10000) usleep(1000);
    if (waited == 10000) kill(pid, SIGKILL);
    OK(status);
  }
  atomic_store(&held, 0);
  OK(aclrtSynchronizeStream(own));
  OK(aclrtSynchronizeStream(busy));
}
