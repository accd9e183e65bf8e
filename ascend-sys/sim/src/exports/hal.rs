//! The counter of a device, which programs read through the driver.

use super::*;
use crate::clock::{now_ns, wait_until};

/// The driver's code for an unsupported request.
const NOT_SUPPORTED: i32 = 0xfffe;

exports! { ascend_sys::hal, code;
    fn halGetDeviceInfo(device: u32, module: i32, info: i32, value: *mut i64) {
        value.put(read(device, module, info)?)
    }

    fn halGetAPIVersion(version: *mut i32) {
        version.put(HAL_API_WITH_HOST_OSC)
    }
}

/// Reads a value of the device with this logical id. Waits a microsecond before it reads the counter, and another one afterwards.
fn read(device: u32, module: i32, info: i32) -> Outcome<i64> {
    fail_if(!config().hal || module != MODULE_TYPE_SYSTEM, NOT_SUPPORTED)?;
    let device = runtime().device_by_logical(device)?;
    let pause = || wait_until(now_ns() + 1000);
    pause();
    let value = match info {
        INFO_TYPE_VERSION => u64::from(HAL_API_WITH_HOST_OSC.cast_unsigned()),
        INFO_TYPE_SYS_COUNT => device.ticks(),
        INFO_TYPE_MONOTONIC_RAW => device.clock.ns(device.ticks()),
        INFO_TYPE_DEV_OSC_FREQUE => device.clock.khz(),
        INFO_TYPE_HOST_OSC_FREQUE => 100_000,
        _ => return Err(NOT_SUPPORTED),
    };
    pause();
    i64::try_from(value).map_err(|_| ACL_ERROR_INTERNAL_ERROR)
}
