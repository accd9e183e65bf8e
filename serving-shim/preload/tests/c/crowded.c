// Launches more kernels than names are remembered of, twice, and says how often the runtime was asked for a name by then. Linked with the libraries.
#include "interface.h"
#include <stdio.h>
EVERYTHING(DECLARE)
int fake_times_asked(void);

enum { KERNELS = 20000 };

int main(void) {
  for (int round = 0; round < 2; round++) {
    for (uintptr_t n = 1; n <= KERNELS; n++) aclrtLaunchKernel((void *)(0x10000000 + n * 64), 1, NULL, 0, NULL);
    printf("%d\n", fake_times_asked());
  }
  return 42;
}
