/* The executor of an operator that is asked for the size of its workspace and never launched. */
#include <stdlib.h>

int aclDestroyAclOpExecutor(void *executor) { free(executor); return 0; }
