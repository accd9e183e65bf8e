// A vendor library that throws, and one whose wait can be cancelled.
#include <cstdint>
#include <stdexcept>
#include <unistd.h>

extern "C" int aclrtLaunchKernel(void *, uint32_t blocks, const void *, size_t, void *) {
  if (blocks > 1) throw std::runtime_error("thrown by the vendor");
  return 0;
}

extern "C" int aclrtSynchronizeStream(void *) {
  for (;;) pause();
}
