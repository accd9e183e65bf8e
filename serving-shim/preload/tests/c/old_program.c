// Launches through a library with nested calls.
#include "interface.h"
EVERYTHING(DECLARE)
int main(void) {
  aclrtLaunchKernel(NULL, 1, NULL, 0, NULL);
  HcclAllReduce(NULL, NULL, 2, 4, 0, NULL, NULL);
  rtKernelLaunch(NULL, 1, NULL, 0, NULL, NULL);
  return 42;
}
