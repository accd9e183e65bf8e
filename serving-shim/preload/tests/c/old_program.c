// Launches through a library in whose calls others are nested.
#include "interface.h"
EVERYTHING(DECLARE)
int main(void) {
  aclrtLaunchKernel(NULL, 1, NULL, 0, NULL);
  HcclAllReduce(NULL, NULL, 2, 4, 0, NULL, NULL);
  rtKernelLaunch(NULL, 1, NULL, 0, NULL, NULL);
  return 42;
}
