// The vendor's interface according to ../functions.txt.
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef struct { const char *so, *kernel, *op; } aicpu_names;
typedef struct { int type; void *buffer; uint64_t count; int element; uint32_t rank; } batch_item;
typedef struct { uint32_t magic, version; const void *data; uint64_t length; } binary;

// The types of arguments and results: their letters, the argument that a call gives in place n from the end (calls.c), and how a fake shows it.
#define TYPES(EACH)                                                                                                     \
  EACH(P, void *, (void *)(uintptr_t)(0x5a0000000000 + n), " %p", value) /* never read */                                 \
  EACH(R, void *, (void *)(uintptr_t)(0x5b0000000000 + n), " %p", value) /* a handle of the rt level */                   \
  EACH(U, uint32_t, 0x80000000u + (unsigned)n, " %#xu", value)                                                            \
  EACH(I, int32_t, -n, " %d", value)                                                                                      \
  EACH(L, uint64_t, 0x8000000000000000u + (unsigned)n, " %#llxL", (unsigned long long)value)                              \
  EACH(S, const char *, n % 2 ? "odd text" : "even text", " \"%s\"", value ? value : "(null)")                            \
  EACH(H, void **, (written = (void *)0x1111, &written), " (was %p)", *value) /* receives a handle */                     \
  EACH(W, uint32_t *, &numbers[n], " (was %u)", *value) /* receives a number */                                           \
  EACH(N, const aicpu_names *, &names, " {%s,%s,%s}", value->so, value->kernel, value->op)                                \
  EACH(B, const batch_item *, items, " {%d,%p,%llu,%d,%u}", value->type, value->buffer, (unsigned long long)value->count, value->element, value->rank) \
  EACH(C, uint32_t, 2, " %u", value) /* how many of them */                                                               \
  EACH(T, int32_t, 4, " %d", value) /* type of an element */                                                              \
  EACH(E, const binary *, &whole, " {%#x,%s,%llu}", value->magic, (const char *)value->data, (unsigned long long)value->length) \
  EACH(Z, const size_t *, sizes, " {%zu,%zu}", value[0], value[1])                                                        \
  EACH(D, size_t, 2, " %zu", value) /* how many of them */

#define TYPE(letter, type, ...) typedef type type_##letter;
TYPES(TYPE)
typedef void type_V;

// For each library, a macro that passes its functions to F: result, name, parameters, arguments, how the arguments are shown, and how a fake writes to them.
#include "functions.h"
#define EVERYTHING(F) ACL(F) RT(F) HCCL(F) MSTX(F) PROFILER(F)
#define DECLARE(R, name, PARAMETERS, ...) type_##R name PARAMETERS;

// The next answer of the fake; `fake_answer` is in libfake_answer.so, which all fakes share.
typedef struct { int result; int error; } answer;
extern answer fake_answer;
