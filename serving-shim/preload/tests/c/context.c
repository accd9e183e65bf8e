// Destroys a context while kernels wait in one of its streams.
#include "acl_abi.h"
#include <unistd.h>

int main(void) {
  aclrtBinHandle binary;
  aclrtFuncHandle func;
  aclrtContext context;
  aclrtStream stream;
  if (aclInit(NULL) || aclrtSetDevice(0) || aclrtCreateContext(&context, 0) || aclrtCreateStream(&stream)) return 1;
  if (aclrtBinaryLoadFromData("x", 1, NULL, &binary) || aclrtBinaryGetFunction(binary, "matmul", &func)) return 1;
  for (int n = 0; n < 5; n++)
    if (aclrtLaunchKernel(func, 1, "", 0, stream)) return 1;
  if (aclrtDestroyContext(context) || aclrtSetDevice(0)) return 1;
  usleep(100000); // the device's thread polls the stream
  return 42;
}
