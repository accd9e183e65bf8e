/* The options of the operator compiler, which are accepted and have no effect. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int aclSetCompileopt(int option, const char *value) { return 0; }
size_t aclGetCompileoptSize(int option) { return 1; }
int aclGetCompileopt(int option, char *value, size_t bytes) { memset(value, 0, bytes); return 0; }
int aclrtCtxSetSysParamOpt(int option, int64_t value) { return 0; }
