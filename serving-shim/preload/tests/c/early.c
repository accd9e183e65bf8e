// A library that calls the runtime while it is loaded, before main. Exit handlers that are registered then run among the destructors of all libraries, and
// after some of them.
#include <stdint.h>

int aclrtSynchronizeDevice(void);

__attribute__((constructor)) static void begin(void) { aclrtSynchronizeDevice(); }
