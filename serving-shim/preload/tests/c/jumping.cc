// Leaves a wait by siglongjmp, as programs do that give up waiting at a signal, and goes on.
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>

extern "C" int aclrtSynchronizeDevice(void);
extern "C" int aclrtSynchronizeStream(void *stream);

static sigjmp_buf before;

static void give_up(int signal) {
  (void)signal;
  siglongjmp(before, 1);
}

int main(void) {
  signal(SIGUSR1, give_up);
  for (volatile int n = 0; n < 3; n = n + 1)
    if (sigsetjmp(before, 1) == 0) printf("waited %d\n", aclrtSynchronizeDevice());
    else printf("gave up\n");
  for (int n = 0; n < 2; n++) printf("waited %d\n", aclrtSynchronizeStream(NULL));
  return 42;
}
