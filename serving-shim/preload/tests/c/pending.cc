// Threads whose cancellation is asked for before they call: it takes effect where they come to a cancellation point themselves, not in our work.
#include <cstdint>
#include <cstdio>
#include <dlfcn.h>
#include <pthread.h>
#include <stdexcept>

extern "C" int aclrtLaunchKernel(void *, uint32_t blocks, const void *, size_t, void *);

static int launched, caught;

static void *work(void *) {
  pthread_cancel(pthread_self());
  for (int n = 0; n < 3; n++) {
    if (aclrtLaunchKernel(nullptr, 1, nullptr, 0, nullptr) == 0) launched++;
    try {
      aclrtLaunchKernel(nullptr, 2, nullptr, 0, nullptr);
    } catch (const std::runtime_error &) {
      caught++;
    }
  }
  auto mark = reinterpret_cast<void (*)(const char *, void *)>(dlsym(RTLD_DEFAULT, "mstxMarkA"));
  if (mark) mark("marked", nullptr);
  pthread_testcancel();
  launched = -1;
  return nullptr;
}

int main() {
  for (int n = 0; n < 2; n++) {
    pthread_t thread;
    void *result;
    pthread_create(&thread, nullptr, work, nullptr);
    pthread_join(thread, &result);
    printf("launched %d, caught %d, cancelled %d\n", launched, caught, result == PTHREAD_CANCELED);
  }
  return 42;
}
