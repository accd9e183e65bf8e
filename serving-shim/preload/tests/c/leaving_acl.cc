// A vendor library whose calls do not return normally: a launch that throws, a wait that can be cancelled, and one that a signal interrupts.
#include <csignal>
#include <cstddef>
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

extern "C" int aclrtSynchronizeDevice(void) { return raise(SIGUSR1); }
extern "C" int aclrtSynchronizeEvent(void *) { return 0; }
