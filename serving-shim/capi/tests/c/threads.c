/* Threads that record side by side, hand async spans on in a ring, and end the same async spans at the same time. */
#include <sa_profile.h>

#include <pthread.h>

#include "check.h"

#define E2E SA_PROFILE_LEVEL_E2E
enum { THREADS = 8, STEPS = 2000, HANDED = 50, RACED = 500 };

static sa_profile_async_span_t handed[THREADS][HANDED], raced[RACED];
static pthread_barrier_t barrier;

static void *work(void *number) {
  const size_t own = (size_t)number;
  for (int at = 0; at < HANDED; at++) {
    handed[own][at] = sa_profile_async_span_begin_args(E2E, "test", "handed on", SA_PROFILE_ARGS(sa_profile_arg_bool("begun", true)));
  }
  pthread_barrier_wait(&barrier);
  for (int step = 0; step < STEPS; step++) {
    sa_profile_span_t span = sa_profile_span_begin(E2E, "test", "work");
    sa_profile_span_arg_int(span, "step", step);
    sa_profile_span_end(span);
  }
  for (int at = 0; at < HANDED; at++) {
    sa_profile_async_span_t span = handed[(own + 1) % THREADS][at];
    sa_profile_async_span_arg_bool(span, "ended", true);
    sa_profile_async_span_end(span);
  }
  pthread_barrier_wait(&barrier);
  for (int at = 0; at < RACED; at++) sa_profile_async_span_end(raced[at]);
  return NULL;
}

int main(void) {
  sa_profile_init();
  CHECK(pthread_barrier_init(&barrier, NULL, THREADS) == 0);
  for (int at = 0; at < RACED; at++) raced[at] = sa_profile_async_span_begin(E2E, "test", "raced");
  pthread_t threads[THREADS];
  for (size_t at = 0; at < THREADS; at++) CHECK(pthread_create(&threads[at], NULL, work, (void *)at) == 0);
  for (size_t at = 0; at < THREADS; at++) CHECK(pthread_join(threads[at], NULL) == 0);
  return 0;
}
