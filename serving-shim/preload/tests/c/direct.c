// The calls by name, for a program that is linked with the libraries; what it cannot call by name it does not need.
#ifndef DIRECT
#define DIRECT
#endif
#include "calls.c"
void call_found(void *(*lookup)(const char *)) { (void)lookup; }
