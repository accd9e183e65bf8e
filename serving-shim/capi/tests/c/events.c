/* Records each kind of event and arg once. */
#include <sa_profile.h>

#include <math.h>
#include <string.h>

#include "check.h"

#define E2E SA_PROFILE_LEVEL_E2E

static const int64_t ints[] = {1, -2};
static const double doubles[] = {0.5};
static const char *const strings[] = {"x", NULL, ""};

#define LISTS                                                                                            \
  sa_profile_arg_ints("ints", ints, 2), sa_profile_arg_doubles("doubles", doubles, 1),                   \
      sa_profile_arg_strings("strings", strings, 3), sa_profile_arg_ints("empty", ints, 0)
#define ALL                                                                                              \
  SA_PROFILE_ARGS(sa_profile_arg_int("int", INT64_MIN), SA_PROFILE_ARG("uint", UINT64_MAX),              \
                  SA_PROFILE_ARG("double", 0.25f), SA_PROFILE_ARG("nan", (double)NAN),                   \
                  SA_PROFILE_ARG("bool", (bool)true), sa_profile_arg_bool("no", false),                  \
                  SA_PROFILE_ARG("string", "a\"b\n"), sa_profile_arg_string_n("cut", "a\0bcd", 3),       \
                  SA_PROFILE_ARG("none", (const char *)NULL), LISTS)

#define ONE_BY_ONE(kind, span)                                                                           \
  kind##_arg_int(span, "int", INT64_MIN), kind##_arg_uint(span, "uint", UINT64_MAX),                     \
      kind##_arg_double(span, "double", 0.25), kind##_arg_double(span, "nan", NAN),                      \
      kind##_arg_bool(span, "bool", true), kind##_arg_bool(span, "no", false),                           \
      kind##_arg_string(span, "string", "a\"b\n"), kind##_arg_string_n(span, "cut", "a\0bcd", 3),        \
      kind##_arg_string(span, "none", NULL), kind##_args(span, SA_PROFILE_ARGS(LISTS))

static void spans(void) {
  sa_profile_span_t span = sa_profile_span_begin(E2E, "test", "plain");
  CHECK(sa_profile_span_is_recording(span));
  sa_profile_span_end(span);

  sa_profile_span_end(sa_profile_span_begin_args(E2E, "test", "args at begin", ALL));

  span = sa_profile_span_begin(E2E, "test", "args one by one");
  ONE_BY_ONE(sa_profile_span, span);
  sa_profile_span_end(span);

  sa_profile_span_t outer = sa_profile_span_begin_args(E2E, "test", "grown", SA_PROFILE_ARGS(SA_PROFILE_ARG("first", 1)));
  sa_profile_span_t inner = sa_profile_span_begin_args(SA_PROFILE_LEVEL_KERNEL, "k", "kernel", SA_PROFILE_ARGS(SA_PROFILE_ARG("m", 64)));
  sa_profile_span_arg_int(outer, "later", 2);
  sa_profile_span_end(inner);
  sa_profile_span_arg_int(outer, "last", 3);
  sa_profile_span_end(outer);
}

static void async_spans(void) {
  sa_profile_async_span_t span = sa_profile_async_span_begin(E2E, "test", "async args");
  CHECK(sa_profile_async_span_is_recording(span));
  ONE_BY_ONE(sa_profile_async_span, span);
  sa_profile_async_span_end(span);
}

static void flows(void) {
  sa_profile_span_t span = sa_profile_span_begin(E2E, "test", "flowing");
  static const sa_profile_flow_phase_t phases[] = {SA_PROFILE_FLOW_START, SA_PROFILE_FLOW_STEP, SA_PROFILE_FLOW_END};
  for (size_t at = 0; at < 3; at++) {
    sa_profile_flow(E2E, phases[at], "test", "here", 7);
    sa_profile_flow_global(SA_PROFILE_LEVEL_KERNEL, phases[at], "test", "everywhere", UINT64_MAX);
    sa_profile_flow_text(E2E, phases[at], NULL, "request", "cmpl-0");
  }
  sa_profile_span_end(span);
}

int main(void) {
  sa_profile_init();
  CHECK(sa_profile_is_enabled() && sa_profile_is_main());
  CHECK(sa_profile_includes(E2E) && sa_profile_includes(SA_PROFILE_LEVEL_KERNEL));
  CHECK(!sa_profile_includes(SA_PROFILE_LEVEL_VERBOSE) && !sa_profile_includes(99));
  sa_profile_process_set_name("c-process");
  sa_profile_thread_set_name("renamed thread");
  spans();
  async_spans();
  sa_profile_instant(E2E, "test", "instant", ALL);
  sa_profile_counter(E2E, "counted", SA_PROFILE_ARGS(SA_PROFILE_ARG("running", 3), SA_PROFILE_ARG("waiting", 0.5)));
  flows();
  const uint64_t now_ns = sa_profile_now_ns();
  CHECK(now_ns > 10000000);
  sa_profile_duration(E2E, "test", "retro", now_ns - 5000000, 1500000, SA_PROFILE_ARGS(SA_PROFILE_ARG("rows", 2)));
  sa_profile_duration(E2E, "test", "ended now", SA_PROFILE_ENDS_NOW, 2000, SA_PROFILE_NO_ARGS);
  sa_profile_span_t off = sa_profile_span_begin_args(SA_PROFILE_LEVEL_VERBOSE, "test", "verbose", ALL);
  CHECK(!sa_profile_span_is_recording(off));
  sa_profile_span_end(off);

  char path[4096], id[8];
  CHECK(sa_profile_fragment(path, sizeof path) == strlen(path));
  sa_profile_flush();
  FILE *fragment = fopen(path, "r");
  CHECK(fragment != NULL);
  fclose(fragment);
  CHECK(sa_profile_trace(path, sizeof path) == strlen(path) && strstr(path, "trace.json") != NULL);
  CHECK(sa_profile_run_id(id, sizeof id) > strlen(id) && strlen(id) == sizeof id - 1);
  CHECK(sa_profile_dropped() == 0);
  sa_profile_finish();
  CHECK(!sa_profile_is_enabled());
  CHECK(!sa_profile_span_is_recording(sa_profile_span_begin(E2E, "test", "after the end")));
  return 0;
}
