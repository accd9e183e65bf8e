// Names handles and stubs in every way and launches them. Linked with the libraries.
#include "interface.h"
#include <stdio.h>
EVERYTHING(DECLARE)
int fake_times_asked(void);

static void *handle_of(const char *name) {
  void *handle = NULL;
  aclrtBinaryGetFunction(NULL, name, &handle);
  return handle;
}

static void launch(void *handle) { aclrtLaunchKernel(handle, 8, NULL, 0, (void *)0x5); }

// A kernel as in a binary: a symbol with its tiling key. This program is the binary.
void PagedAttention_0123456789abcdef_160_mix_aic(void) {}
void PagedAttention_0123456789abcdef_7(void) {}

static void *registered(size_t length) {
  static char whole[1 << 20];
  FILE *file = fopen("/proc/self/exe", "rb");
  size_t read = fread(whole, 1, sizeof whole, file);
  fclose(file);
  void *handle = NULL;
  rtRegisterAllKernel(&(binary){0x43554245, 0, whole, length < read ? length : read}, &handle);
  return handle;
}

int main(void) {
  rtKernelLaunchWithHandleV2(registered(SIZE_MAX), 7, 4, NULL, NULL, NULL, NULL);
  rtKernelLaunchWithHandleV2(registered(100), 7, 4, NULL, NULL, NULL, NULL); // at the same address
  void *handle = handle_of("MatMulV2_8f9d3c5e7a1b2d4f6081a2b3c4d5e6f7_1_mix_aic");
  launch(handle);
  rtLaunchKernelByFuncHandle(handle, 8, NULL, NULL);
  launch(handle_of("Renamed"));
  aclrtBinaryGetFunctionByEntry(NULL, 7, &handle);
  for (int n = 0; n < 3; n++) launch(handle);
  for (int n = 0; n < 3; n++) launch((void *)0xdead);
  launch(NULL);
  static char stub;
  rtFunctionRegister(NULL, &stub, "triton_poi_fused_add_0", NULL, 0);
  rtKernelLaunch(&stub, 4, NULL, 0, NULL, NULL);
  fake_answer = (answer){107017, 0};
  rtFunctionRegister(NULL, &stub, "refused", NULL, 0);
  handle_of("refused too");
  aclrtLaunchKernelWithHostArgs(handle, 8, NULL, NULL, NULL, 0, NULL, 0);
  fake_answer = (answer){0, 0};
  aclrtLaunchKernelWithHostArgs(handle, 8, NULL, NULL, NULL, 0, NULL, 0);
  rtKernelLaunch(&stub, 4, NULL, 0, NULL, NULL);
  printf("asked %d\n", fake_times_asked());
  return 42;
}
