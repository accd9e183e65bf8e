// A signal arrives while the program is in its allocator, and the handler launches, like bash, which waits for its children in a signal handler. Uses allocator.c, which aborts if it is entered again.
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int aclrtLaunchKernel(void *func, uint32_t blocks, const void *args, size_t bytes, void *stream);

static __thread volatile int comes __attribute__((tls_model("initial-exec")));
static int launched;

// Called by the allocator.
void while_inside(void) {
  if (comes) raise(SIGUSR1);
}

static void handle(int signal) {
  (void)signal;
  launched += aclrtLaunchKernel(NULL, 1, NULL, 0, NULL) == 0;
}

static void *wait_for_ever(void *nothing) {
  pause();
  return nothing;
}

int main(void) {
  pthread_t thread; // with two threads the recorder uses a helper thread
  if (pthread_create(&thread, NULL, wait_for_ever, NULL)) return 1;
  signal(SIGUSR1, handle);
  raise(SIGUSR1);
  for (int n = 0; n < 99; n++) {
    comes = 1;
    void *volatile memory = malloc(100); // volatile, or the compiler leaves both calls out
    comes = 0;
    free(memory);
  }
  printf("launched %d\n", launched);
  return 42;
}
