/* Destroys the executor of an operator that was only asked for the size of its workspace. */
#include <stdlib.h>

int aclDestroyAclOpExecutor(void *executor) { free(executor); return 0; }
