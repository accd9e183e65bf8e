// A library that calls the runtime while it is loaded, before main. What is registered for the exit then runs among the destructors of all libraries, and
// behind those of some of them.
#include <stdint.h>

int aclrtSynchronizeDevice(void);

__attribute__((constructor)) static void begin(void) { aclrtSynchronizeDevice(); }
