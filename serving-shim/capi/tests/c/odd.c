/* Misuses of the API, none of which may harm the program. Prints the number of refused spans. */
#include <sa_profile.h>

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "check.h"

#define E2E SA_PROFILE_LEVEL_E2E
enum { BOUND = 65536 /* async spans that may be open at a time */, RACED = 500 };

static sa_profile_async_span_t handed_on, raced[RACED];
static pthread_barrier_t both;

static void *end_raced(void *unused) {
  pthread_barrier_wait(&both);
  for (int at = 0; at < RACED; at++) sa_profile_async_span_end(raced[at]);
  return unused;
}

static void *end_there(void *of_another_thread) {
  const sa_profile_span_t span = *(const sa_profile_span_t *)of_another_thread;
  sa_profile_async_span_arg_bool(handed_on, "elsewhere", true);
  sa_profile_async_span_end(handed_on);
  sa_profile_span_arg_int(span, "elsewhere", 1);
  sa_profile_span_end(span);
  sa_profile_span_end(sa_profile_span_begin(E2E, "test", "own"));
  sa_profile_span_end(span);
  return NULL;
}

static void nothing(void) {
  sa_profile_arg_t args[6] = {sa_profile_arg_int(NULL, 1), sa_profile_arg_string("s", NULL), sa_profile_arg_string_n("n", NULL, 9),
                              sa_profile_arg_strings("list", NULL, 3), sa_profile_arg_int("kind", 1),
                              sa_profile_arg_string_n("huge", "a", SIZE_MAX)};
  args[4].kind = 77;
  sa_profile_instant(E2E, NULL, NULL, args, 6);
  sa_profile_instant(E2E, "test", "no args", NULL, 5);
  sa_profile_process_set_name(NULL);
  sa_profile_process_set_name("odd");
  sa_profile_thread_set_name("main");
  sa_profile_run_id(NULL, 0);
  CHECK(sa_profile_directory(NULL, 9) > 0);
  char one[1] = {'x'};
  CHECK(sa_profile_directory(one, 0) > 0 && one[0] == 'x');
  CHECK(sa_profile_directory(one, 1) > 0 && one[0] == '\0');
}

static void broken(void) {
  sa_profile_span_t span = sa_profile_span_begin(E2E, "c\xff", "br\xc3ken");
  sa_profile_span_arg_string(span, "k\xfe", "v\xf0");
  sa_profile_span_end(span);
  static char text[20001];
  memset(text, 'x', 20000);
  sa_profile_instant(E2E, "test", "long", SA_PROFILE_ARGS(SA_PROFILE_ARG("text", text)));
  sa_profile_instant(99, "test", "never", SA_PROFILE_NO_ARGS);
  sa_profile_flow(E2E, 99, "test", "never", 1);
  sa_profile_flow_text(E2E, SA_PROFILE_FLOW_START, "test", "never", NULL);
  sa_profile_span_end(sa_profile_span_begin(99, "test", "never"));
}

static void counters(void) {
  const double zero = 0, nan = zero / zero, infinite = 1 / zero;
  sa_profile_counter(E2E, "counter",
                     SA_PROFILE_ARGS(SA_PROFILE_ARG("nan", nan), sa_profile_arg_bool("yes", true), SA_PROFILE_ARG("infinite", infinite),
                                     sa_profile_arg_bool("no", false), SA_PROFILE_ARG("text", "7"), SA_PROFILE_ARG("half", 0.5)));
  sa_profile_counter(E2E, "undrawn", SA_PROFILE_ARGS(SA_PROFILE_ARG("nan", nan), sa_profile_arg_string("null", NULL)));
  sa_profile_counter(E2E, "undrawn", SA_PROFILE_NO_ARGS);
}

static void handles(void) {
  sa_profile_span_t twice = sa_profile_span_begin(E2E, "test", "ended twice");
  sa_profile_span_end(twice);
  sa_profile_span_t after = sa_profile_span_begin(E2E, "test", "after");
  sa_profile_span_end(twice);
  sa_profile_span_arg_int(twice, "late", 1);
  sa_profile_span_arg_int(after, "own", 1);
  const sa_profile_span_t invented = {0x123456789abcdef}, none = {0};
  sa_profile_span_arg_int(invented, "k", 1);
  sa_profile_span_end(invented);
  sa_profile_span_end(none);
  sa_profile_span_end(after);

  sa_profile_span_t elsewhere = sa_profile_span_begin(E2E, "test", "ended elsewhere");
  handed_on = sa_profile_async_span_begin_args(E2E, "test", "handed on", SA_PROFILE_ARGS(SA_PROFILE_ARG("begun", 1)));
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, end_there, &elsewhere) == 0 && pthread_join(thread, NULL) == 0);
  sa_profile_span_end(elsewhere);

  for (int at = 0; at < RACED; at++) raced[at] = sa_profile_async_span_begin(E2E, "test", "raced");
  CHECK(pthread_barrier_init(&both, NULL, 2) == 0 && pthread_create(&thread, NULL, end_raced, NULL) == 0);
  end_raced(NULL);
  CHECK(pthread_join(thread, NULL) == 0);

  sa_profile_async_span_t async = sa_profile_async_span_begin(E2E, "test", "async twice");
  sa_profile_async_span_arg_int(async, "before", 1);
  sa_profile_async_span_end(async);
  sa_profile_async_span_arg_int(async, "late", 1);
  sa_profile_async_span_end(async);

  sa_profile_span_t outer = sa_profile_span_begin(E2E, "test", "outer");
  sa_profile_span_t inner = sa_profile_span_begin(E2E, "test", "inner");
  sa_profile_span_end(outer);
  sa_profile_span_end(inner);
}

int main(void) {
  errno = 4711;
  CHECK(sa_profile_is_enabled() && errno == 4711); /* this call sets up files and a thread */
  sa_profile_init();
  CHECK(errno == 4711 && getenv("SA_PROFILE_RUN") != NULL);
  CHECK(unsetenv("SA_PROFILE_RUN") == 0);
  sa_profile_init();
  CHECK(getenv("SA_PROFILE_RUN") == NULL);
  nothing();
  broken();
  counters();
  handles();
  sa_profile_flush();
  CHECK(errno == 4711);
  CHECK(sa_profile_dropped() == 0);
  for (int at = 0; at < 5000; at++) sa_profile_span_begin(E2E, "test", "left open");
  static sa_profile_async_span_t many[BOUND + 10];
  for (int at = 0; at < BOUND + 10; at++) many[at] = sa_profile_async_span_begin(E2E, "test", "many");
  CHECK(sa_profile_async_span_is_recording(many[BOUND - 1]) && !sa_profile_async_span_is_recording(many[BOUND]));
  sa_profile_async_span_end(many[0]);
  printf("%" PRIu64 "\n", sa_profile_dropped());
  sa_profile_finish();
  CHECK(errno == 4711);
  return 0;
}
