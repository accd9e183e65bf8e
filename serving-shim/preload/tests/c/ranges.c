// Opens more ranges with one id than can be stored, and makes a mark in a domain.
#include "interface.h"
#include <stdio.h>
#include <unistd.h>
EVERYTHING(DECLARE)

int main(void) {
  uint64_t last = 0;
  for (int n = 0; n < 70; n++) last = mstxRangeStartA("many", NULL);
  usleep(20000);
  for (int n = 0; n < 70; n++) mstxRangeEnd(last);
  mstxDomainMarkA(mstxDomainCreateA("group"), "marked", NULL);
  return 42;
}
