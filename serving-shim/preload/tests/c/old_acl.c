// An ACL like older versions: its launch calls the rt level in another library. Linked without -Bsymbolic.
#include "interface.h"
RT(DECLARE)
int aclrtLaunchKernel(void *func, uint32_t blocks, const void *args, size_t bytes, void *stream) {
  return rtKernelLaunch(func, blocks, (void *)args, (uint32_t)bytes, NULL, stream);
}
int HcclAllReduce(void *send, void *recv, uint64_t count, int type, int op, void *comm, void *stream) {
  return aclrtLaunchKernel(comm, 1, send, count, recv) + rtKernelLaunch(comm, 1, NULL, type, NULL, stream) + op * 0;
}
