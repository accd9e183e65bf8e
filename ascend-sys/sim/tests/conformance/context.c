/* Contexts and devices. */
#include "check.h"

/* ASCEND_RT_VISIBLE_DEVICES=5,2 */
CASE(devices) {
  uint32_t count;
  int32_t id;
  OK(aclrtGetDeviceCount(&count));
  IS(count, 2);
  OK(aclrtGetLogicDevIdByUserDevId(1, &id));
  IS(id, 2);
  OK(aclrtGetPhyDevIdByUserDevId(0, &id));
  IS(id, 5);
  IS(aclrtGetPhyDevIdByUserDevId(2, &id), 107001);
  IS(aclrtSetDevice(2), 107001);
}
