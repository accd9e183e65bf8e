// Is killed during a wait, with an open range.
#include <stdint.h>

int aclrtSynchronizeStream(void *stream);
uint64_t mstxRangeStartA(const char *message, void *stream);

int main(void) {
  mstxRangeStartA("request", (void *)0x51);
  aclrtSynchronizeStream((void *)0x52);
  return 42;
}
