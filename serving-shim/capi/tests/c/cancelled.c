/* Threads that are cancelled before they record. The cancellation takes effect at their own cancellation point, not in a call of the recorder. */
#include <sa_profile.h>

#include <pthread.h>

#include "check.h"

#define E2E SA_PROFILE_LEVEL_E2E
#define MANY 10000

static void *work(void *unused) {
  (void)unused;
  CHECK(pthread_cancel(pthread_self()) == 0);
  sa_profile_span_t span = sa_profile_span_begin_args(E2E, "test", "span", SA_PROFILE_ARGS(SA_PROFILE_ARG("k", 1)));
  sa_profile_async_span_t async = sa_profile_async_span_begin(E2E, "test", "async");
  sa_profile_instant(E2E, "test", "instant", SA_PROFILE_NO_ARGS);
  sa_profile_async_span_end(async);
  sa_profile_span_end(span);
  for (int at = 0; at < MANY; at++) { /* enough to fill the ring several times, so that the thread also writes to the file */
    sa_profile_span_t one = sa_profile_span_begin(E2E, "test", "one of many");
    sa_profile_span_arg_int(one, "at", at);
    sa_profile_span_end(one);
  }
  sa_profile_flush();
  int state;
  CHECK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state) == 0);
  CHECK(state == PTHREAD_CANCEL_ENABLE);
  pthread_testcancel();
  CHECK(!"the thread was not cancelled");
  return NULL;
}

int main(void) {
  for (int at = 0; at < 2; at++) { /* the first thread also starts the recording */
    pthread_t thread;
    void *result;
    CHECK(pthread_create(&thread, NULL, work, NULL) == 0);
    CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
  }
  return 0;
}
