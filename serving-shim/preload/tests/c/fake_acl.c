// A vendor library for tests, one part of interface.h at a time (-DPART=ACL …): it prints what it is called with, byte for byte, and answers what it was told to. Unlike the simulated
// runtime it accepts everything, so each argument can be followed.
#include "interface.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int quiet(void) { return getenv("FAKE_QUIET") != NULL; }

static void show_P(type_P value) { printf(" %p", value); }
static void show_R(type_R value) { printf(" %p", value); }
static void show_U(type_U value) { printf(" %#xu", value); }
static void show_I(type_I value) { printf(" %d", value); }
static void show_T(type_T value) { printf(" %d", value); }
static void show_L(type_L value) { printf(" %#llxL", (unsigned long long)value); }
static void show_S(type_S value) { printf(" \"%s\"", value ? value : "(null)"); }
static void show_C(type_C value) { printf(" %u", value); }
static void show_E(type_E value) { printf(" {%#x,%s,%llu}", value->magic, (const char *)value->data, (unsigned long long)value->length); }
static void show_H(type_H value) { printf(" (was %p)", *value); }
static void show_W(type_W value) { printf(" (was %u)", *value); }
static void show_N(type_N value) { printf(" {%s,%s,%s}", value->so, value->kernel, value->op); }
static void show_B(type_B value) { printf(" {%d,%p,%llu,%d,%u}", value->type, value->buffer, (unsigned long long)value->count, value->element, value->rank); }

static void show_Z(type_Z value) { printf(" {%zu,%zu}", value[0], value[1]); }
static void show_D(type_D value) { printf(" %zu", value); }

static void write_H(type_H value) {
  if (fake_answer.result == 0) *value = (void *)0xabc000;
}
static void write_W(type_W value) {
  if (fake_answer.result == 0) *value = 31;
}
static void write_none(const void *value) { (void)value; }

#define SHOW(A, n) show_##A(a##n);
#define WRITE(A, n) _Generic(a##n, type_H: write_H, type_W: write_W, default: write_none)((void *)(uintptr_t)a##n);

static void finish(void) {
  if (fake_answer.error) errno = fake_answer.error;
}
#define RETURN_I return fake_answer.result;
#define RETURN_V return;
// Without a tool that listens, the vendor's annotations have neither ids nor handles.
#define RETURN_L return getenv("FAKE_NO_TOOL") ? 0 : 0x77;
#define RETURN_P return getenv("FAKE_NO_TOOL") ? NULL : (void *)0xd0d0;

#define DEFINE(R, name, n, ...)                      \
  type_##R name(LIST_##n(PARAMETER, COMMA, __VA_ARGS__)) { \
    int before = errno;                              \
    if (!quiet()) {                                  \
      printf("  real %s:", #name);                   \
      LIST_##n(SHOW, NOTHING, __VA_ARGS__) printf(" errno %d\n", before); \
    }                                                \
    LIST_##n(WRITE, NOTHING, __VA_ARGS__) finish();           \
    RETURN_##R                                       \
  }

PART(DEFINE)

#ifdef WITH_NAMES
ASKED(DEFINE)

static int asked;
int aclrtGetFunctionName(void *handle, uint32_t room, char *name) {
  asked++;
  errno = 4321; // nobody may see it
  if (handle == (void *)0xdead) return 107000;
  snprintf(name, room, "%s", handle == (void *)0xabc000 ? "AskedFor_0123456789abcdef0123456789abcdef_1" : "Asked");
  return 0;
}
int fake_times_asked(void) { return asked; }
#endif
