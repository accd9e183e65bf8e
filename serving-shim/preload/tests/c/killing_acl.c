// A vendor library in which the program dies while it waits.
#include <signal.h>

int aclrtSynchronizeStream(void *stream) { return raise(stream ? SIGKILL : SIGCONT); }
