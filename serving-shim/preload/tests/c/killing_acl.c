// A vendor library that kills the program during a wait.
#include <signal.h>

int aclrtSynchronizeStream(void *stream) { return raise(stream ? SIGKILL : SIGCONT); }
