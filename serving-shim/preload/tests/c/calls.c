// Calls every function once and prints what comes back. Compiled with -DDIRECT it calls by name, through the PLT of whatever it is linked into; without, it calls what `lookup` finds.
#include "interface.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#ifdef DIRECT
EVERYTHING(DECLARE)
#define CALLED(R, name, n, ...) name
#else
#define CALLED(R, name, n, ...) ((type_##R(*)(LIST_##n(PARAMETER, COMMA, __VA_ARGS__)))lookup(#name))
#endif

static void *written;
static uint32_t numbers[3];
static const aicpu_names names = {"libaicpu.so", "AicpuKernel", "AicpuOp"};
static const binary whole = {0x43554245, 0, "no binary", 9};
static const batch_item items[2] = {{0, (void *)0x1, 3, 3, 1}, {1, (void *)0x2, 5, 4, 2}};

static const size_t sizes[2] = {700, 77};

static type_P given_P(int n) { return (void *)(uintptr_t)(0x5a0000000000 + n); }
static type_R given_R(int n) { return (void *)(uintptr_t)(0x5b0000000000 + n); }
static type_U given_U(int n) { return 0x80000000u + (unsigned)n; }
static type_I given_I(int n) { return -n; }
static type_T given_T(int n) { (void)n; return 4; }
static type_L given_L(int n) { return 0x8000000000000000u + (unsigned)n; }
static type_S given_S(int n) { return n % 2 ? "odd text" : "even text"; }
static type_H given_H(int n) { (void)n; written = (void *)0x1111; return &written; }
static type_W given_W(int n) { return &numbers[n]; }
static type_N given_N(int n) { (void)n; return &names; }
static type_C given_C(int n) { (void)n; return 2; }
static type_E given_E(int n) { (void)n; return &whole; }
static type_B given_B(int n) { (void)n; return items; }
static type_Z given_Z(int n) { (void)n; return sizes; }
static type_D given_D(int n) { (void)n; return 2; }

#define SHOWN_I(call) printf("-> %d", call)
#define SHOWN_L(call) printf("-> %#llx", (unsigned long long)call)
#define SHOWN_P(call) printf("-> %p", call)
#define SHOWN_V(call) (call, printf("->"))

// Its libraries may not be loaded yet: then nothing is called.
#define CALL(R, name, n, ...)                                                    \
  printf("%s\n", #name);                                                         \
  if (!CALLED(R, name, n, __VA_ARGS__)) printf("not there\n");                   \
  else {                                                                         \
    errno = 1234;                                                                \
    SHOWN_##R(CALLED(R, name, n, __VA_ARGS__)(LIST_##n(GIVE, COMMA, __VA_ARGS__)));          \
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
#ifdef DIRECT
#pragma GCC diagnostic ignored "-Waddress"
#endif
  EVERYTHING(CALL)
}
