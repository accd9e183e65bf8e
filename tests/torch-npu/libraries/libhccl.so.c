/* Functions that torch_npu looks up by name in libhccl.so and the simulated runtime lacks. */
#include <stdint.h>

int HcclCommInitRootInfo(uint32_t ranks, const void *root, uint32_t rank, void **comm);

int HcclCommInitRootInfoConfig(uint32_t ranks, const void *root, uint32_t rank, const void *config, void **comm) { return HcclCommInitRootInfo(ranks, root, rank, comm); }
int HcclGetCommAsyncError(void *comm, int *error) { *error = 0; return 0; }
uint32_t HcclGetCommConfigCapability(void) { return 0; }
