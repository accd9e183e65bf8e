// Catches what the vendor's library throws, and cancels a thread that waits in it.
#include <cstdint>
#include <cstdio>
#include <pthread.h>
#include <stdexcept>
#include <unistd.h>

extern "C" int aclrtLaunchKernel(void *, uint32_t blocks, const void *, size_t, void *);
extern "C" int aclrtSynchronizeStream(void *);

struct Said {
  ~Said() { puts("cleaned up"); }
};

static void *wait_for_ever(void *) {
  Said said;
  aclrtSynchronizeStream(nullptr);
  return nullptr;
}

int main() {
  for (unsigned blocks = 1; blocks < 4; blocks++) {
    try {
      printf("launched %d\n", aclrtLaunchKernel(nullptr, blocks, nullptr, 0, nullptr));
    } catch (const std::runtime_error &error) {
      printf("caught: %s\n", error.what());
    }
  }
  printf("launched %d\n", aclrtLaunchKernel(nullptr, 1, nullptr, 0, nullptr));
  pthread_t thread;
  void *result;
  pthread_create(&thread, nullptr, wait_for_ever, nullptr);
  usleep(50000);
  pthread_cancel(thread);
  pthread_join(thread, &result);
  printf("cancelled %d\n", result == PTHREAD_CANCELED);
  return 42;
}
