/* sa_profile: records what a process of an LLM serving engine does, for Perfetto. C11 and C++11, Linux. Generated from serving-shim/capi/src.
 *
 *   sa_profile_init();                          // first in main, before there are threads
 *   sa_profile_span_t step = sa_profile_span_begin(SA_PROFILE_LEVEL_E2E, "engine", "step");
 *   sa_profile_span_arg_int(step, "tokens", 8);
 *   sa_profile_instant(SA_PROFILE_LEVEL_E2E, "serving", "request.queued", SA_PROFILE_ARGS(SA_PROFILE_ARG("request_id", "cmpl-1")));
 *   sa_profile_span_end(step);
 *
 * Nothing is recorded unless SA_PROFILE_DIR is set; then each process writes one fragment there, and `trace-merge $SA_PROFILE_DIR` makes the trace.
 *
 * Levels and cost. An event whose level is off costs a call and one load. Args are computed before the call all the same: ask
 * sa_profile_includes() first where that is costly.
 *
 * Ownership. Nothing of this library is ever freed by the caller, and nothing of the caller's is kept: strings and arrays are copied before a call returns.
 * Each pointer is null or good for reading (a buffer: for writing) until then. A null name, category or key reads "(null)"; a null string
 * or list is the value null; a null array of args holds none; a null buffer takes nothing. Bytes that are no UTF-8 are replaced by U+FFFD; texts over 16 KiB are cut, and marked.
 *
 * Handles are numbers, not pointers. One whose span has ended, or that never was one, is refused: the call does nothing. {0} is the handle of no span.
 *
 * Threads. Every function may be called on every thread at any time, except sa_profile_init(). A sa_profile_span_t and a sa_profile_launch_t belong to the thread
 * that began them: on another one their functions do nothing. Spans of a thread nest. A sa_profile_async_span_t may be used on every thread; of two threads that end it, one does.
 *
 * Signal handlers. Do not call from them: events may allocate memory. One that comes while its thread is recording is dropped, and counted.
 *
 * fork. At any time, with any threads. The child records into a fragment of its own, from its first event on. Spans and launches that are open at the fork
 * are the parent's: in the child their handles do nothing. Nothing may be called between vfork and exec.
 *
 * Failure. No function fails, aborts, throws or changes errno. What cannot be kept is counted (sa_profile_dropped) and told in the trace; the first
 * problem is said on stderr, once.
 *
 * Crashes. What was recorded survives the death of the process, kill -9 included; spans open at that moment show as unfinished.
 */

#ifndef SA_PROFILE_H
#define SA_PROFILE_H


#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
#include <initializer_list>
#include <type_traits>
#endif

/* The version of this header; sa_profile_version() returns the version of the library. */
#define SA_PROFILE_VERSION "0.1.0"
#define SA_PROFILE_VERSION_MAJOR 0
#define SA_PROFILE_VERSION_MINOR 1
#define SA_PROFILE_VERSION_PATCH 0


// As `start_ns` of `sa_profile_duration`: so that it ends now.
#define SA_PROFILE_ENDS_NOW UINT64_MAX

// As `device` of `sa_profile_launch_walls`: no device is named, and there is no slice on one.
#define SA_PROFILE_NO_DEVICE UINT32_MAX

// What an event belongs to; `SA_PROFILE_LEVEL` in the environment says which levels are recorded. Events of an unknown level are not.
typedef uint32_t sa_profile_level_t;

// A span of the thread that began it. Only a number: to end it twice, on another thread, or in the child of a fork does nothing.
typedef struct {
  // 0 if it is not recorded; else of use to this library only.
  uint64_t id;
} sa_profile_span_t;

// The value of an arg.
typedef union {
  // Of `SA_PROFILE_ARG_INT`.
  int64_t integer;
  // Of `SA_PROFILE_ARG_UINT` and `SA_PROFILE_ARG_BOOL`.
  uint64_t unsigned_integer;
  // Of `SA_PROFILE_ARG_DOUBLE`.
  double number;
  // Of `SA_PROFILE_ARG_STRING` and `SA_PROFILE_ARG_STRING_N`.
  const char *string;
  // Of `SA_PROFILE_ARG_INTS`.
  const int64_t *integers;
  // Of `SA_PROFILE_ARG_DOUBLES`.
  const double *numbers;
  // Of `SA_PROFILE_ARG_STRINGS`.
  const char *const *strings;
} sa_profile_arg_value_t;

// The kind of an arg's value. A value of an unknown kind becomes `null`.
typedef uint32_t sa_profile_arg_kind_t;

// One argument of an event. Made by `sa_profile_arg_int` and its like, or by `SA_PROFILE_ARG`.
typedef struct {
  // Its name.
  const char *key;
  // Its value.
  sa_profile_arg_value_t value;
  // Bytes of a string, elements of a list.
  size_t length;
  // Which member of `value` holds.
  sa_profile_arg_kind_t kind;
} sa_profile_arg_t;

// A span that may move: begun on one thread, ended on any other of the process. Only a number: to end it twice, or in the child of a fork, does nothing.
typedef struct {
  // 0 if it is not recorded; else of use to this library only.
  uint64_t id;
} sa_profile_async_span_t;

// Where in a flow an event stands. Events of an unknown phase are not recorded.
typedef uint32_t sa_profile_flow_phase_t;

// A launch under way on the thread that began it. Only a number: to end it twice, on another thread, or in the child of a fork does nothing.
typedef struct {
  // 0 if it is not recorded; else of use to this library only.
  uint64_t id;
} sa_profile_launch_t;

// Requests, scheduling, steps. Recorded by default.
#define SA_PROFILE_LEVEL_E2E 0

// Kernel launches. Recorded by default.
#define SA_PROFILE_LEVEL_KERNEL 1

// Everything else.
#define SA_PROFILE_LEVEL_VERBOSE 2

// `value.integer`.
#define SA_PROFILE_ARG_INT 1

// `value.unsigned_integer`.
#define SA_PROFILE_ARG_UINT 2

// `value.number`; NaN and infinities become `null`.
#define SA_PROFILE_ARG_DOUBLE 3

// `value.unsigned_integer`: 0 is false, all else true.
#define SA_PROFILE_ARG_BOOL 4

// `value.string`, which ends with a NUL byte.
#define SA_PROFILE_ARG_STRING 5

// `value.string`, `length` bytes long, NUL bytes included.
#define SA_PROFILE_ARG_STRING_N 6

// `value.integers`: a list of `length` integers.
#define SA_PROFILE_ARG_INTS 7

// `value.numbers`: a list of `length` numbers.
#define SA_PROFILE_ARG_DOUBLES 8

// `value.strings`: a list of `length` strings, each of which ends with a NUL byte.
#define SA_PROFILE_ARG_STRINGS 9

// The first event of a flow.
#define SA_PROFILE_FLOW_START 0

// An event on the way.
#define SA_PROFILE_FLOW_STEP 1

// The last event of a flow.
#define SA_PROFILE_FLOW_END 2

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Starts recording if the environment asks for it, and exports the run to child processes: `SA_PROFILE_RUN`, `SA_PROFILE_MAIN_PID` and the run
// directory, absolute. Call it first in `main`, before there are threads: it calls `setenv`. A library that is loaded into somebody else's process
// leaves it out: recording then starts with the first event, and children find the run by its directory. A second call does nothing.
void sa_profile_init(void);

// Whether anything is recorded: false without the variables in the environment, while recording is switched off, after `sa_profile_finish`, and if it
// could not be set up (which is said once on stderr).
bool sa_profile_is_enabled(void);

// Whether events of this level are recorded: worth asking before costly args are computed.
bool sa_profile_includes(sa_profile_level_t level);

// Names the process in the trace; a later name replaces it.
void sa_profile_process_set_name(const char *name);

// Names the calling thread in the trace; a later name replaces it. Without it a thread has the name that the system knows.
void sa_profile_thread_set_name(const char *name);

// Brings everything recorded so far into the fragment. Never needed for safety: a killed process loses nothing that was recorded. Waits a second at
// most for a writer that is under way.
void sa_profile_flush(void);

// Ends recording in this process, for good; what is open shows as unfinished. It also runs at exit, so that nobody must call it. A second call does nothing.
void sa_profile_finish(void);

// Events that this process could not keep so far; the trace says why.
uint64_t sa_profile_dropped(void);

// Now, in ns of `CLOCK_MONOTONIC`: the clock of all times of this header.
uint64_t sa_profile_now_ns(void);

// The library's version, as in `SA_PROFILE_VERSION`; lives as long as the process.
const char *sa_profile_version(void);

// Whether this is the main process of its run. False if nothing is recorded.
bool sa_profile_is_main(void);

// Copies the run's id into `buffer`, as `snprintf` does: at most `size` bytes with the NUL byte, and returns the length of the whole. 0 if nothing is
// recorded.
size_t sa_profile_run_id(char *buffer,
                         size_t size);

// Copies the run directory's absolute path into `buffer`, as `sa_profile_run_id` does.
size_t sa_profile_directory(char *buffer, size_t size);

// Copies the path where the merged trace belongs into `buffer`, as `sa_profile_run_id` does.
size_t sa_profile_trace(char *buffer, size_t size);

// Copies the path of this process's fragment into `buffer`, as `sa_profile_run_id` does.
size_t sa_profile_fragment(char *buffer, size_t size);

// Begins a span on the calling thread. One that is never ended shows as unfinished; of a thread's, 4096 may be open at a time.
sa_profile_span_t sa_profile_span_begin(sa_profile_level_t level, const char *category, const char *name);

// Begins a span as `sa_profile_span_begin` does, with `count` args.
sa_profile_span_t sa_profile_span_begin_args(sa_profile_level_t level,
                                             const char *category,
                                             const char *name,
                                             const sa_profile_arg_t *args,
                                             size_t count);

// Adds `count` args; they may be added until the span ends.
void sa_profile_span_args(sa_profile_span_t span, const sa_profile_arg_t *args, size_t count);

// Adds an integer.
void sa_profile_span_arg_int(sa_profile_span_t span, const char *key, int64_t value);

// Adds an integer that is not negative.
void sa_profile_span_arg_uint(sa_profile_span_t span, const char *key, uint64_t value);

// Adds a number; NaN and infinities become `null`.
void sa_profile_span_arg_double(sa_profile_span_t span, const char *key, double value);

// Adds `true` or `false`.
void sa_profile_span_arg_bool(sa_profile_span_t span, const char *key, bool value);

// Adds a string, which ends with a NUL byte; a null pointer becomes `null`.
void sa_profile_span_arg_string(sa_profile_span_t span, const char *key, const char *value);

// Adds a string of `length` bytes, NUL bytes included; a null pointer becomes `null`.
void sa_profile_span_arg_string_n(sa_profile_span_t span, const char *key, const char *value, size_t length);

// Ends the span. Does nothing if it has ended already, or never began.
void sa_profile_span_end(sa_profile_span_t span);

// Begins a span that may end on another thread, on the lowest free lane of the process. One that is never ended shows as unfinished; 65536 may be open at a time.
sa_profile_async_span_t sa_profile_async_span_begin(sa_profile_level_t level,
                                                    const char *category,
                                                    const char *name);

// Begins a span as `sa_profile_async_span_begin` does, with `count` args.
sa_profile_async_span_t sa_profile_async_span_begin_args(sa_profile_level_t level,
                                                         const char *category,
                                                         const char *name,
                                                         const sa_profile_arg_t *args,
                                                         size_t count);

// Adds `count` args; they may be added until the span ends.
void sa_profile_async_span_args(sa_profile_async_span_t span, const sa_profile_arg_t *args, size_t count);

// Adds an integer.
void sa_profile_async_span_arg_int(sa_profile_async_span_t span, const char *key, int64_t value);

// Adds an integer that is not negative.
void sa_profile_async_span_arg_uint(sa_profile_async_span_t span, const char *key, uint64_t value);

// Adds a number; NaN and infinities become `null`.
void sa_profile_async_span_arg_double(sa_profile_async_span_t span, const char *key, double value);

// Adds `true` or `false`.
void sa_profile_async_span_arg_bool(sa_profile_async_span_t span, const char *key, bool value);

// Adds a string, which ends with a NUL byte; a null pointer becomes `null`.
void sa_profile_async_span_arg_string(sa_profile_async_span_t span, const char *key, const char *value);

// Adds a string of `length` bytes, NUL bytes included; a null pointer becomes `null`.
void sa_profile_async_span_arg_string_n(sa_profile_async_span_t span, const char *key, const char *value, size_t length);

// Ends the span. Does nothing if it has ended already, or never began.
void sa_profile_async_span_end(sa_profile_async_span_t span);

// Records an instant on the calling thread.
void sa_profile_instant(sa_profile_level_t level,
                        const char *category,
                        const char *name,
                        const sa_profile_arg_t *args,
                        size_t count);

// Records the values of a counter at this moment: one series for each of the args.
//
// A boolean counts as 0 or 1. A value that is not a finite number is left out and counted.
void sa_profile_counter(sa_profile_level_t level, const char *name, const sa_profile_arg_t *series, size_t count);

// Records one event of a flow whose id is unique within this process. It binds to the span that encloses it on the calling thread.
//
// The events of a flow have the same category, name and id. A null `category` is `"flow"`, the default in every language, so that events of different
// programs meet.
void sa_profile_flow(sa_profile_level_t level,
                     sa_profile_flow_phase_t phase,
                     const char *category,
                     const char *name,
                     uint64_t id);

// Records one event of a flow as `sa_profile_flow` does; the same id is the same flow in every process of the run.
void sa_profile_flow_global(sa_profile_level_t level,
                            sa_profile_flow_phase_t phase,
                            const char *category,
                            const char *name,
                            uint64_t id);

// Records one event of the flow of the text `id`, such as the id of a request. It is the same flow in every process of the run, and the flow
// of the same text in Rust and Python.
//
// An event without an id (null) is not recorded.
void sa_profile_flow_text(sa_profile_level_t level,
                          sa_profile_flow_phase_t phase,
                          const char *category,
                          const char *name,
                          const char *id);

// Records a span that has ended already, on the calling thread: `duration_ns` long, begun at `start_ns` (as `sa_profile_now_ns` counts) or, with
// `SA_PROFILE_ENDS_NOW`, so that it ends now. A negative duration counts as 0.
void sa_profile_duration(sa_profile_level_t level,
                         const char *category,
                         const char *name,
                         uint64_t start_ns,
                         int64_t duration_ns,
                         const sa_profile_arg_t *args,
                         size_t count);

// Begins a launch of a kernel into a stream of the calling thread's context: call it directly before the call that launches, and `sa_profile_launch_end`
// directly after it. A null stream is the context's default one. `grid` is the number of blocks, 0 for unknown. Its level is `SA_PROFILE_LEVEL_KERNEL`.
sa_profile_launch_t sa_profile_launch_begin(void *stream,
                                            const char *name,
                                            uint32_t grid);

// Adds `count` args, to the span on the host and the slice on the device; until the launch ends.
void sa_profile_launch_args(sa_profile_launch_t launch, const sa_profile_arg_t *args, size_t count);

// Ends a launch with what the launching call returned: 0 if the kernel is in the stream. Any other code is shown on the host's span, and there is no slice
// on the device. Does nothing if the launch has ended already, or never began.
void sa_profile_launch_end(sa_profile_launch_t launch,
                           int32_t code);

// Records a run whose runtime told both wall times when it had ended: a span on the host's thread, from `host_start_ns` (as `sa_profile_now_ns` counts) or,
// with `SA_PROFILE_ENDS_NOW`, so that it ends now; and a slice of `device_wall_ns` on the device of that number, in the middle of it, since where within it the device worked is not
// known. Without a device's number (`SA_PROFILE_NO_DEVICE`) the span alone.
void sa_profile_launch_walls(const char *name,
                             uint64_t host_start_ns,
                             uint64_t host_wall_ns,
                             uint64_t device_wall_ns,
                             uint32_t device,
                             const sa_profile_arg_t *args,
                             size_t count);

// Waits until the launches made so far have their slices, `patience_ns` at most; whether they have. It waits for no stream: call it where these have been waited for, before the device's runtime is shut down.
bool sa_profile_launch_flush(uint64_t patience_ns);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

static inline bool sa_profile_span_is_recording(sa_profile_span_t span) {
  return span.id != 0;
}

static inline bool sa_profile_async_span_is_recording(sa_profile_async_span_t span) {
  return span.id != 0;
}

static inline bool sa_profile_launch_is_recording(sa_profile_launch_t launch) {
  return launch.id != 0;
}

/* Args for the functions that take arrays of them. */

static inline sa_profile_arg_t sa_profile_arg_of_kind(const char *key, sa_profile_arg_kind_t kind, size_t length) {
  sa_profile_arg_t arg;
  arg.key = key;
  arg.value.unsigned_integer = 0;
  arg.length = length;
  arg.kind = kind;
  return arg;
}

static inline sa_profile_arg_t sa_profile_arg_int(const char *key, int64_t value) {
  sa_profile_arg_t arg = sa_profile_arg_of_kind(key, SA_PROFILE_ARG_INT, 0);
  arg.value.integer = value;
  return arg;
}

static inline sa_profile_arg_t sa_profile_arg_uint(const char *key, uint64_t value) {
  sa_profile_arg_t arg = sa_profile_arg_of_kind(key, SA_PROFILE_ARG_UINT, 0);
  arg.value.unsigned_integer = value;
  return arg;
}

static inline sa_profile_arg_t sa_profile_arg_double(const char *key, double value) {
  sa_profile_arg_t arg = sa_profile_arg_of_kind(key, SA_PROFILE_ARG_DOUBLE, 0);
  arg.value.number = value;
  return arg;
}

static inline sa_profile_arg_t sa_profile_arg_bool(const char *key, bool value) {
  sa_profile_arg_t arg = sa_profile_arg_of_kind(key, SA_PROFILE_ARG_BOOL, 0);
  arg.value.unsigned_integer = value ? 1 : 0;
  return arg;
}

static inline sa_profile_arg_t sa_profile_arg_string(const char *key, const char *value) {
  sa_profile_arg_t arg = sa_profile_arg_of_kind(key, SA_PROFILE_ARG_STRING, 0);
  arg.value.string = value;
  return arg;
}

static inline sa_profile_arg_t sa_profile_arg_string_n(const char *key, const char *value, size_t length) {
  sa_profile_arg_t arg = sa_profile_arg_of_kind(key, SA_PROFILE_ARG_STRING_N, length);
  arg.value.string = value;
  return arg;
}

static inline sa_profile_arg_t sa_profile_arg_ints(const char *key, const int64_t *values, size_t count) {
  sa_profile_arg_t arg = sa_profile_arg_of_kind(key, SA_PROFILE_ARG_INTS, count);
  arg.value.integers = values;
  return arg;
}

static inline sa_profile_arg_t sa_profile_arg_doubles(const char *key, const double *values, size_t count) {
  sa_profile_arg_t arg = sa_profile_arg_of_kind(key, SA_PROFILE_ARG_DOUBLES, count);
  arg.value.numbers = values;
  return arg;
}

static inline sa_profile_arg_t sa_profile_arg_strings(const char *key, const char *const *values, size_t count) {
  sa_profile_arg_t arg = sa_profile_arg_of_kind(key, SA_PROFILE_ARG_STRINGS, count);
  arg.value.strings = values;
  return arg;
}

/* SA_PROFILE_ARG(key, value): an arg of the value's own type. In C before C23, `true` is an int: use sa_profile_arg_bool.
 * SA_PROFILE_ARGS(arg, ...): the array and its length, as the two last parameters of a function. Each arg is evaluated once.
 * SA_PROFILE_NO_ARGS: none. */
#define SA_PROFILE_NO_ARGS NULL, 0

#ifdef __cplusplus

static inline sa_profile_arg_t sa_profile_arg(const char *key, bool value) { return sa_profile_arg_bool(key, value); }
static inline sa_profile_arg_t sa_profile_arg(const char *key, int value) { return sa_profile_arg_int(key, value); }
static inline sa_profile_arg_t sa_profile_arg(const char *key, long value) { return sa_profile_arg_int(key, value); }
static inline sa_profile_arg_t sa_profile_arg(const char *key, long long value) { return sa_profile_arg_int(key, value); }
static inline sa_profile_arg_t sa_profile_arg(const char *key, unsigned value) { return sa_profile_arg_uint(key, value); }
static inline sa_profile_arg_t sa_profile_arg(const char *key, unsigned long value) { return sa_profile_arg_uint(key, value); }
static inline sa_profile_arg_t sa_profile_arg(const char *key, unsigned long long value) { return sa_profile_arg_uint(key, value); }
static inline sa_profile_arg_t sa_profile_arg(const char *key, double value) { return sa_profile_arg_double(key, value); }
static inline sa_profile_arg_t sa_profile_arg(const char *key, const char *value) { return sa_profile_arg_string(key, value); }

/* No other pointer is a value: it would be taken for true. */
template <class Other> sa_profile_arg_t sa_profile_arg(const char *key, const volatile Other *value) = delete;
template <class Result, class... Taken> sa_profile_arg_t sa_profile_arg(const char *key, Result (*value)(Taken...)) = delete;

/* std::string, std::string_view and their like. */
template <class Text>
static inline auto sa_profile_arg(const char *key, const Text &text)
    -> decltype(static_cast<void>(static_cast<const char *>(text.data())), static_cast<void>(text.size()), sa_profile_arg_t()) {
  return sa_profile_arg_string_n(key, text.data(), text.size());
}

template <class... Arg> std::integral_constant<size_t, sizeof...(Arg)> sa_profile_arg_count(const Arg &...);

#define SA_PROFILE_ARG(key, value) sa_profile_arg((key), (value))
#define SA_PROFILE_ARGS(...) \
  std::initializer_list<sa_profile_arg_t>{__VA_ARGS__}.begin(), decltype(sa_profile_arg_count(__VA_ARGS__))::value

namespace sa_profile {

/* A span of the calling thread that ends with its block. */
class Span {
 public:
  Span(sa_profile_level_t level, const char *category, const char *name) : span_(sa_profile_span_begin(level, category, name)) {}
  /* With args from its begin on: Span span(level, "kernel", name, SA_PROFILE_ARGS(SA_PROFILE_ARG("layer", layer))); */
  Span(sa_profile_level_t level, const char *category, const char *name, const sa_profile_arg_t *args, size_t count)
      : span_(sa_profile_span_begin_args(level, category, name, args, count)) {}
  ~Span() { sa_profile_span_end(span_); }
  Span(const Span &) = delete;
  Span &operator=(const Span &) = delete;

  bool is_recording() const { return sa_profile_span_is_recording(span_); }
  template <class Value> void arg(const char *key, const Value &value) {
    if (is_recording()) {
      const sa_profile_arg_t arg = sa_profile_arg(key, value);
      sa_profile_span_args(span_, &arg, 1);
    }
  }

 private:
  sa_profile_span_t span_;
};

}  // namespace sa_profile

#else

#define SA_PROFILE_ARG(key, value)                  \
  _Generic((value),                                 \
      bool: sa_profile_arg_bool,                    \
      char: sa_profile_arg_int,                     \
      signed char: sa_profile_arg_int,              \
      short: sa_profile_arg_int,                    \
      int: sa_profile_arg_int,                      \
      long: sa_profile_arg_int,                     \
      long long: sa_profile_arg_int,                \
      unsigned char: sa_profile_arg_uint,           \
      unsigned short: sa_profile_arg_uint,          \
      unsigned: sa_profile_arg_uint,                \
      unsigned long: sa_profile_arg_uint,           \
      unsigned long long: sa_profile_arg_uint,      \
      float: sa_profile_arg_double,                 \
      double: sa_profile_arg_double,                \
      char *: sa_profile_arg_string,                \
      const char *: sa_profile_arg_string)((key), (value))
#define SA_PROFILE_ARGS(...)                        \
  (const sa_profile_arg_t[]){__VA_ARGS__},          \
      sizeof((const sa_profile_arg_t[]){__VA_ARGS__}) / sizeof(sa_profile_arg_t)

#endif  /* __cplusplus */

#endif  /* SA_PROFILE_H */
