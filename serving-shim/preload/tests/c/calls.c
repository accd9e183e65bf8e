// Calls every function once and prints the result. Compiled with -DDIRECT it calls by name, through the PLT of whatever it is linked into; without it, it calls the function that `lookup` finds.
#include "interface.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#ifdef DIRECT
EVERYTHING(DECLARE)
#define CALLED(R, name, PARAMETERS) name
#else
#define CALLED(R, name, PARAMETERS) ((type_##R(*) PARAMETERS)lookup(#name))
#endif

static void *written;
static uint32_t numbers[3];
static const aicpu_names names = {"libaicpu.so", "AicpuKernel", "AicpuOp"};
static const binary whole = {0x43554245, 0, "no binary", 9};
static const batch_item items[2] = {{0, (void *)0x1, 3, 3, 1}, {1, (void *)0x2, 5, 4, 2}};

static const size_t sizes[2] = {700, 77};

#define GIVEN(letter, type, given, ...) \
  static type_##letter given_##letter(int n) { return (void)n, given; }
TYPES(GIVEN)

#define SHOWN_I(call) printf("-> %d", call)
#define SHOWN_L(call) printf("-> %#llx", (unsigned long long)call)
#define SHOWN_P(call) printf("-> %p", call)
#define SHOWN_V(call) (call, printf("->"))

// Its libraries may not be loaded yet: then nothing is called.
#define CALL(R, name, PARAMETERS, ARGUMENTS, ...)                                \
  printf("%s\n", #name);                                                         \
  if (!CALLED(R, name, PARAMETERS)) printf("not there\n");                       \
  else {                                                                         \
    errno = 1234;                                                                \
    SHOWN_##R(CALLED(R, name, PARAMETERS) ARGUMENTS);                            \
    int after = errno;                                                           \
    printf(" errno %d", after);                                                  \
    if (written) printf(" written %p", written);                                 \
    written = NULL;                                                              \
    if (numbers[1]) printf(" numbers %u %u", numbers[1], numbers[2]);            \
    memset(numbers, 0, sizeof numbers);                                          \
    printf("\n");                                                                \
  }

#ifdef DIRECT
void call_everything(void)
#else
void call_found(void *(*lookup)(const char *))
#endif
{
#pragma GCC diagnostic ignored "-Waddress"
  EVERYTHING(CALL)
}
