// A library with a function of the vendor's name.
int aclrtSynchronizeDevice(void) { return 11; }
