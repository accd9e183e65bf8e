// A vendor library for tests, one part of interface.h at a time (-DPART=ACL …): it prints its arguments, byte for byte, and returns the configured answer. Unlike the simulated
// runtime it accepts everything, so that each argument can be traced.
#include "interface.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wunused-function" // for types that a part does not use

static int quiet(void) { return getenv("FAKE_QUIET") != NULL; }

#define SHOW(letter, type, given, ...) \
  static void show_##letter(type_##letter value) { printf(__VA_ARGS__); }
TYPES(SHOW)

static void write_H(type_H value) {
  if (fake_answer.result == 0) *value = (void *)0xabc000;
}
static void write_W(type_W value) {
  if (fake_answer.result == 0) *value = 31;
}

static void finish(void) {
  if (fake_answer.error) errno = fake_answer.error;
}
#define RETURN_I return fake_answer.result;
#define RETURN_V return;
// Without an active tool, the vendor's annotations return neither ids nor handles.
#define RETURN_L return getenv("FAKE_NO_TOOL") ? 0 : 0x77;
#define RETURN_P return getenv("FAKE_NO_TOOL") ? NULL : (void *)0xd0d0;

#define DEFINE(R, name, PARAMETERS, ARGUMENTS, SHOWN, WRITTEN) \
  type_##R name PARAMETERS {                       \
    int before = errno;                            \
    if (!quiet()) {                                \
      printf("  real %s:", #name);                 \
      SHOWN printf(" errno %d\n", before);         \
    }                                              \
    WRITTEN finish();                              \
    RETURN_##R                                     \
  }

PART(DEFINE)

#ifdef WITH_ACL
ASKED(DEFINE)

static int asked;
int aclrtGetFunctionName(void *handle, uint32_t room, char *name) {
  asked++;
  errno = 4321; // must not reach the program
  if (handle == (void *)0xdead) return 107000;
  snprintf(name, room, "%s", handle == (void *)0xabc000 ? "AskedFor_0123456789abcdef0123456789abcdef_1" : "Asked");
  return 0;
}
int fake_times_asked(void) { return asked; }
#endif
