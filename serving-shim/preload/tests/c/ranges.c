// More ranges of one id than are remembered, as far as the vendor hands out ids; and a domain that is made again at an address where another one was.
#include "interface.h"
#include <stdio.h>
#include <unistd.h>
EVERYTHING(DECLARE)

static void within(const char *name) {
  void *domain = mstxDomainCreateA(name);
  mstxDomainMarkA(domain, name, NULL);
  mstxDomainDestroy(domain);
}

int main(void) {
  uint64_t last = 0;
  for (int n = 0; n < 70; n++) last = mstxRangeStartA("many", NULL);
  usleep(20000);
  for (int n = 0; n < 70; n++) mstxRangeEnd(last);
  within("first");
  within("second");
  within("first");
  return 42;
}
