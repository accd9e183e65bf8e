/* sa_profile: records what a process of an LLM serving engine does, for Perfetto. C11 and C++11, Linux. Generated from serving-shim/capi/src.
 *
 *   sa_profile_init();                          // first in main, before there are threads
 *   sa_profile_span_t step = sa_profile_span_begin(SA_PROFILE_LEVEL_E2E, "engine", "step");
 *   sa_profile_span_arg_int(step, "tokens", 8);
 *   sa_profile_instant(SA_PROFILE_LEVEL_E2E, "serving", "request.queued", SA_PROFILE_ARGS(SA_PROFILE_ARG("request_id", "cmpl-1")));
 *   sa_profile_span_end(step);
 *
 * Nothing is recorded unless SA_PROFILE_DIR is set; then each process writes one fragment there, and `trace-merge $SA_PROFILE_DIR` creates the trace.
 *
 * Levels and cost. An event whose level is off costs a call and one load. Its args are still computed before the call: if that is expensive,
 * check sa_profile_includes() first.
 *
 * Ownership. The caller never frees memory of this library, and the library keeps no memory of the caller: strings and arrays are copied before a call returns.
 * Each pointer is null or readable until then; a buffer is null or writable. A null name, category or key becomes "(null)". A null string or list becomes the value
 * null. A null array of args has no args. Nothing is written to a null buffer. Invalid UTF-8 is replaced with U+FFFD. Texts over 16 KiB are cut and marked.
 *
 * Handles are numbers, not pointers. A call does nothing if the span of its handle has ended or never existed. {0} is the handle of no span.
 *
 * Threads. Every function except sa_profile_init() may be called on every thread at any time. A sa_profile_span_t and a sa_profile_launch_t belong to the thread
 * that began them: on another thread their functions do nothing. The spans of a thread nest. A sa_profile_async_span_t may be used on every thread. If two threads
 * end it, only one of the calls has an effect.
 *
 * Signal handlers. Do not call these functions from signal handlers, because events may allocate memory. An event from a handler that interrupted a thread while it
 * was recording is dropped and counted.
 *
 * fork. A process may fork at any time, with any number of threads. The child records into its own fragment, from its first event on. Spans and launches that are
 * open at the fork belong to the parent: in the child their handles do nothing. Do not call these functions between vfork and exec.
 *
 * Failure. No function fails, aborts, throws or changes errno. Events that cannot be recorded are counted (sa_profile_dropped) and reported in the trace. The first
 * problem is reported once on stderr.
 *
 * Crashes. Recorded events survive the death of the process, even by kill -9. Spans that were open at that moment are shown as unfinished.
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


// Value of `start_ns` of `sa_profile_duration` for a span that ends now.
#define SA_PROFILE_ENDS_NOW UINT64_MAX

// Value of `device` of `sa_profile_launch_walls` for an unknown device. Then there is no slice on a device.
#define SA_PROFILE_NO_DEVICE UINT32_MAX

// The level of an event. The environment variable `SA_PROFILE_LEVEL` selects the levels that are recorded. Events with an unknown level are not recorded.
typedef uint32_t sa_profile_level_t;

// A span of the thread that began it. Only a number: ending it twice, on another thread, or in the child of a fork does nothing.
typedef struct {
  // 0 if the span is not recorded. Other values have a meaning only to this library.
  uint64_t id;
} sa_profile_span_t;

// The value of an arg.
typedef union {
  // For `SA_PROFILE_ARG_INT`.
  int64_t integer;
  // For `SA_PROFILE_ARG_UINT` and `SA_PROFILE_ARG_BOOL`.
  uint64_t unsigned_integer;
  // For `SA_PROFILE_ARG_DOUBLE`.
  double number;
  // For `SA_PROFILE_ARG_STRING` and `SA_PROFILE_ARG_STRING_N`.
  const char *string;
  // For `SA_PROFILE_ARG_INTS`.
  const int64_t *integers;
  // For `SA_PROFILE_ARG_DOUBLES`.
  const double *numbers;
  // For `SA_PROFILE_ARG_STRINGS`.
  const char *const *strings;
} sa_profile_arg_value_t;

// The kind of an arg's value. A value of an unknown kind becomes `null`.
typedef uint32_t sa_profile_arg_kind_t;

// One argument of an event. Created by `sa_profile_arg_int` and similar functions, or by `SA_PROFILE_ARG`.
typedef struct {
  // The arg's name.
  const char *key;
  // The arg's value.
  sa_profile_arg_value_t value;
  // Number of bytes of a string or of elements of a list.
  size_t length;
  // The member of `value` that is set.
  sa_profile_arg_kind_t kind;
} sa_profile_arg_t;

// A span that may begin on one thread and end on any other of the process. Only a number: ending it twice, or in the child of a fork, does nothing.
typedef struct {
  // 0 if the span is not recorded. Other values have a meaning only to this library.
  uint64_t id;
} sa_profile_async_span_t;

// The position of an event in its flow. Events with an unknown phase are not recorded.
typedef uint32_t sa_profile_flow_phase_t;

// A launch that has begun on the calling thread. Only a number: ending it twice, on another thread, or in the child of a fork does nothing.
typedef struct {
  // 0 if the launch is not recorded. Other values have a meaning only to this library.
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

// `value.unsigned_integer`: 0 is false, everything else is true.
#define SA_PROFILE_ARG_BOOL 4

// `value.string`, which ends with a NUL byte.
#define SA_PROFILE_ARG_STRING 5

// `value.string`, `length` bytes long, NUL bytes included.
#define SA_PROFILE_ARG_STRING_N 6

// `value.integers`: a list of `length` integers.
#define SA_PROFILE_ARG_INTS 7

// `value.numbers`: a list of `length` numbers.
#define SA_PROFILE_ARG_DOUBLES 8

// `value.strings`: a list of `length` strings, each ending with a NUL byte.
#define SA_PROFILE_ARG_STRINGS 9

// The first event of a flow.
#define SA_PROFILE_FLOW_START 0

// An event between the first and the last.
#define SA_PROFILE_FLOW_STEP 1

// The last event of a flow.
#define SA_PROFILE_FLOW_END 2

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Starts recording if the environment asks for it. Exports the run to child processes in `SA_PROFILE_RUN`, `SA_PROFILE_MAIN_PID` and the absolute path of the run
// directory. Call this first in `main`, before there are threads, because it calls `setenv`. A library that is loaded into another program should not call it:
// recording then starts with the first event, and child processes find the run by its directory. A second call does nothing.
void sa_profile_init(void);

// Returns true if events are recorded. Returns false without the environment variables, while recording is switched off, after `sa_profile_finish`, and if
// recording could not be set up, which is reported once on stderr.
bool sa_profile_is_enabled(void);

// Returns true if events of this level are recorded. Check this before computing args that are expensive.
bool sa_profile_includes(sa_profile_level_t level);

// Sets the name of the process in the trace. A later call replaces it.
void sa_profile_process_set_name(const char *name);

// Sets the name of the calling thread in the trace. A later call replaces it. The default is the name that the operating system has for the thread.
void sa_profile_thread_set_name(const char *name);

// Writes everything recorded so far to the fragment. This is never needed for safety: a killed process loses nothing that it recorded. Waits at most one second
// for a write that is in progress.
void sa_profile_flush(void);

// Ends recording in this process permanently. Open spans are shown as unfinished. This also runs at exit, so calling it is optional. A second call does nothing.
void sa_profile_finish(void);

// Returns the number of events that this process has dropped so far. The trace contains the causes.
uint64_t sa_profile_dropped(void);

// Returns the current time of `CLOCK_MONOTONIC` in ns. All times in this header are on this clock.
uint64_t sa_profile_now_ns(void);

// Returns the version of the library, in the form of `SA_PROFILE_VERSION`. The string is valid as long as the process lives.
const char *sa_profile_version(void);

// Returns true if this is the main process of its run. Returns false if nothing is recorded.
bool sa_profile_is_main(void);

// Copies the run's id into `buffer` like `snprintf`: writes at most `size` bytes including the NUL byte, and returns the full length. Returns 0 if nothing is
// recorded.
size_t sa_profile_run_id(char *buffer,
                         size_t size);

// Copies the absolute path of the run directory into `buffer`, like `sa_profile_run_id`.
size_t sa_profile_directory(char *buffer, size_t size);

// Copies the path for the merged trace into `buffer`, like `sa_profile_run_id`.
size_t sa_profile_trace(char *buffer, size_t size);

// Copies the path of this process's fragment into `buffer`, like `sa_profile_run_id`.
size_t sa_profile_fragment(char *buffer, size_t size);

// Begins a span on the calling thread. A span that is never ended is shown as unfinished. At most 4096 spans of a thread may be open; more are dropped and counted.
sa_profile_span_t sa_profile_span_begin(sa_profile_level_t level,
                                        const char *category,
                                        const char *name);

// Begins a span like `sa_profile_span_begin`, with `count` args.
sa_profile_span_t sa_profile_span_begin_args(sa_profile_level_t level,
                                             const char *category,
                                             const char *name,
                                             const sa_profile_arg_t *args,
                                             size_t count);

// Adds `count` args. Args may be added until the span ends.
void sa_profile_span_args(sa_profile_span_t span, const sa_profile_arg_t *args, size_t count);

// Adds an integer.
void sa_profile_span_arg_int(sa_profile_span_t span, const char *key, int64_t value);

// Adds an unsigned integer.
void sa_profile_span_arg_uint(sa_profile_span_t span, const char *key, uint64_t value);

// Adds a number; NaN and infinities become `null`.
void sa_profile_span_arg_double(sa_profile_span_t span, const char *key, double value);

// Adds `true` or `false`.
void sa_profile_span_arg_bool(sa_profile_span_t span, const char *key, bool value);

// Adds a string, which ends with a NUL byte; a null pointer becomes `null`.
void sa_profile_span_arg_string(sa_profile_span_t span, const char *key, const char *value);

// Adds a string of `length` bytes, NUL bytes included; a null pointer becomes `null`.
void sa_profile_span_arg_string_n(sa_profile_span_t span, const char *key, const char *value, size_t length);

// Ends the span. Does nothing if the span has already ended or never began.
void sa_profile_span_end(sa_profile_span_t span);

// Begins a span that may end on another thread, on the lowest free lane of the process. A span that is never ended is shown as unfinished. At most 65536 of them
// may be open in a process; more are dropped and counted.
sa_profile_async_span_t sa_profile_async_span_begin(sa_profile_level_t level,
                                                    const char *category,
                                                    const char *name);

// Begins a span like `sa_profile_async_span_begin`, with `count` args.
sa_profile_async_span_t sa_profile_async_span_begin_args(sa_profile_level_t level,
                                                         const char *category,
                                                         const char *name,
                                                         const sa_profile_arg_t *args,
                                                         size_t count);

// Adds `count` args. Args may be added until the span ends.
void sa_profile_async_span_args(sa_profile_async_span_t span, const sa_profile_arg_t *args, size_t count);

// Adds an integer.
void sa_profile_async_span_arg_int(sa_profile_async_span_t span, const char *key, int64_t value);

// Adds an unsigned integer.
void sa_profile_async_span_arg_uint(sa_profile_async_span_t span, const char *key, uint64_t value);

// Adds a number; NaN and infinities become `null`.
void sa_profile_async_span_arg_double(sa_profile_async_span_t span, const char *key, double value);

// Adds `true` or `false`.
void sa_profile_async_span_arg_bool(sa_profile_async_span_t span, const char *key, bool value);

// Adds a string, which ends with a NUL byte; a null pointer becomes `null`.
void sa_profile_async_span_arg_string(sa_profile_async_span_t span, const char *key, const char *value);

// Adds a string of `length` bytes, NUL bytes included; a null pointer becomes `null`.
void sa_profile_async_span_arg_string_n(sa_profile_async_span_t span, const char *key, const char *value, size_t length);

// Ends the span. Does nothing if the span has already ended or never began.
void sa_profile_async_span_end(sa_profile_async_span_t span);

// Records an instant on the calling thread.
void sa_profile_instant(sa_profile_level_t level,
                        const char *category,
                        const char *name,
                        const sa_profile_arg_t *args,
                        size_t count);

// Records the current values of a counter, with one series for each arg.
//
// A boolean counts as 0 or 1. A value that is not a finite number is dropped and counted as a loss.
void sa_profile_counter(sa_profile_level_t level, const char *name, const sa_profile_arg_t *series, size_t count);

// Records one event of a flow whose id is unique within this process. The event belongs to the span that encloses it on the calling thread.
//
// All events of a flow have the same category, name and id. A null `category` means `"flow"`, the default in every language, so that the events of
// different programs form one flow.
void sa_profile_flow(sa_profile_level_t level,
                     sa_profile_flow_phase_t phase,
                     const char *category,
                     const char *name,
                     uint64_t id);

// Records one event of a flow like `sa_profile_flow`, but the same id means the same flow in every process of the run.
void sa_profile_flow_global(sa_profile_level_t level,
                            sa_profile_flow_phase_t phase,
                            const char *category,
                            const char *name,
                            uint64_t id);

// Records one event of a flow whose id is a text, such as the id of a request. The same text means the same flow in every process of the run, in Rust and
// Python too.
//
// Nothing is recorded if `id` is null.
void sa_profile_flow_text(sa_profile_level_t level,
                          sa_profile_flow_phase_t phase,
                          const char *category,
                          const char *name,
                          const char *id);

// Records a span of the calling thread that has already ended. It lasted `duration_ns` and began at `start_ns`, on the clock of `sa_profile_now_ns`. With
// `SA_PROFILE_ENDS_NOW` as `start_ns` it ends now. A negative duration counts as 0.
void sa_profile_duration(sa_profile_level_t level,
                         const char *category,
                         const char *name,
                         uint64_t start_ns,
                         int64_t duration_ns,
                         const sa_profile_arg_t *args,
                         size_t count);

// Begins the launch of a kernel into a stream of the calling thread's context. Call this directly before the call that launches the kernel, and
// `sa_profile_launch_end` directly after it. A null stream means the context's default stream. `grid` is the number of blocks, or 0 if it is unknown. The level is
// `SA_PROFILE_LEVEL_KERNEL`.
sa_profile_launch_t sa_profile_launch_begin(void *stream,
                                            const char *name,
                                            uint32_t grid);

// Adds `count` args to the span on the host and the slice on the device. Args may be added until the launch ends.
void sa_profile_launch_args(sa_profile_launch_t launch, const sa_profile_arg_t *args, size_t count);

// Ends a launch. `code` is the result of the call that launches the kernel: 0 if the kernel is in the stream. Any other code is shown on the host's span, and there
// is no slice on the device. Does nothing if the launch has already ended or never began.
void sa_profile_launch_end(sa_profile_launch_t launch,
                           int32_t code);

// Records a finished run whose wall times on the host and the device are known from its runtime. The host's span is on the calling thread and begins at
// `host_start_ns`, on the clock of `sa_profile_now_ns`. With `SA_PROFILE_ENDS_NOW` as `host_start_ns` it ends now. The slice on the device lasts `device_wall_ns` and
// is centred within the span, because the time at which the device ran is not known. With `SA_PROFILE_NO_DEVICE` as `device` only the span is recorded.
void sa_profile_launch_walls(const char *name,
                             uint64_t host_start_ns,
                             uint64_t host_wall_ns,
                             uint64_t device_wall_ns,
                             uint32_t device,
                             const sa_profile_arg_t *args,
                             size_t count);

// Waits until all launches so far have their slices, for at most `patience_ns`. Returns true if they have. It does not wait for streams: synchronize them first, and
// call this before the device's runtime is shut down.
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

/* Args for the functions that have an array of args as a parameter. */

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

/* SA_PROFILE_ARG(key, value): an arg whose kind is chosen by the type of the value. Before C23, `true` is an int in C: use sa_profile_arg_bool.
 * SA_PROFILE_ARGS(arg, ...): an array of args and its length, for the last two parameters of a function. Each arg is evaluated once.
 * SA_PROFILE_NO_ARGS: no args, for the same two parameters. */
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

/* Other pointers are not accepted, because they would be converted to bool. */
template <class Other> sa_profile_arg_t sa_profile_arg(const char *key, const volatile Other *value) = delete;
template <class Result, class... Params> sa_profile_arg_t sa_profile_arg(const char *key, Result (*value)(Params...)) = delete;

/* std::string, std::string_view and similar types. */
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
  /* With args from the beginning: Span span(level, "kernel", name, SA_PROFILE_ARGS(SA_PROFILE_ARG("layer", layer))); */
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
