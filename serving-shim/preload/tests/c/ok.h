// Ends the program and names the call that failed.
#include <stdio.h>
#include <stdlib.h>
#define OK(call)                                        \
  do {                                                  \
    int code = (int)(call);                             \
    if (code) printf("%s: %d\n", #call, code), exit(1); \
  } while (0)
