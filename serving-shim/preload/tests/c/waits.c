// A plugin, linked with the vendor's library.
int aclrtSynchronizeDevice(void);
int wait_for_device(void) { return aclrtSynchronizeDevice(); }
