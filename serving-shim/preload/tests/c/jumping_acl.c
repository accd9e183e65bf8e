// A vendor library with a wait that a signal interrupts, and a launch.
#include <signal.h>

int aclrtSynchronizeDevice(void) { return raise(SIGUSR1); }
int aclrtSynchronizeStream(void *stream) { return stream != 0; }
