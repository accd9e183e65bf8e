// Leaves the vendor's calls in every possible way and continues.
#include <csetjmp>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <dlfcn.h>
#include <pthread.h>
#include <stdexcept>
#include <unistd.h>

extern "C" int aclrtLaunchKernel(void *, uint32_t blocks, const void *, size_t, void *);
extern "C" int aclrtSynchronizeStream(void *);
extern "C" int aclrtSynchronizeDevice(void);
extern "C" int aclrtSynchronizeEvent(void *);

static sigjmp_buf before;

// As in programs that stop waiting when a signal arrives.
static void give_up(int) { siglongjmp(before, 1); }

static void launch(uint32_t blocks) {
  try {
    printf("launched %d\n", aclrtLaunchKernel(nullptr, blocks, nullptr, 0, nullptr));
  } catch (const std::runtime_error &error) {
    printf("caught: %s\n", error.what());
  }
}

struct Said {
  ~Said() { puts("cleaned up"); }
};

static void *wait_for_ever(void *) {
  Said said;
  aclrtSynchronizeStream(nullptr);
  return nullptr;
}

// The thread is cancelled before its call. The cancellation must take effect at the thread's own cancellation point, not in our work.
static void *cancelled_before(void *) {
  pthread_cancel(pthread_self());
  for (uint32_t blocks = 1; blocks < 4; blocks++) {
    try {
      if (aclrtLaunchKernel(nullptr, blocks, nullptr, 0, nullptr)) return nullptr;
    } catch (const std::runtime_error &) {
    }
  }
  auto mark = reinterpret_cast<void (*)(const char *, void *)>(dlsym(RTLD_DEFAULT, "mstxMarkA"));
  if (mark) mark("marked", nullptr);
  pthread_testcancel();
  return nullptr;
}

int main() {
  pthread_t thread;
  void *result;
  signal(SIGUSR1, give_up);
  for (uint32_t blocks = 1; blocks < 4; blocks++) launch(blocks);
  launch(1);
  for (auto work : {wait_for_ever, cancelled_before, cancelled_before}) {
    pthread_create(&thread, nullptr, work, nullptr);
    if (work == wait_for_ever) usleep(50000), pthread_cancel(thread);
    pthread_join(thread, &result);
    printf("cancelled %d\n", result == PTHREAD_CANCELED);
  }
  for (volatile int n = 0; n < 3; n = n + 1)
    if (sigsetjmp(before, 1) == 0) printf("waited %d\n", aclrtSynchronizeDevice());
    else printf("gave up\n");
  for (int n = 0; n < 2; n++) printf("waited %d\n", aclrtSynchronizeEvent(nullptr));
  return 42;
}
