//! Initialisation, versions, the vendor's profiler.

use super::*;
use crate::config::Soc;
use crate::mspti::mspti;
use crate::truth::truth;
use std::sync::atomic::Ordering;

/// The simulated version of CANN.
const VERSION: &str = "9.1.0";
/// Size of the buffer for a version, in bytes.
const VERSION_BYTES: usize = 128;

exports! { acl::init, code;
    fn aclInit(_config_path: *const c_char) {
        fail_if(runtime().initialized.swap(true, Ordering::AcqRel), ACL_ERROR_REPEAT_INITIALIZE)?;
        Ok(())
    }

    fn aclsysGetVersionStr(_package: *mut c_char, version: *mut c_char) {
        version.put_text(VERSION, VERSION_BYTES)
    }

    fn aclFinalizeCallbackRegister(_kind: aclRegisterCallbackType, callback: aclFinalizeCallbackFunc, user_data: *mut c_void) {
        runtime().listeners.on_finalize(callback.ok_or(ACL_ERROR_INVALID_PARAM)?, user_data.address());
        Ok(())
    }
}

exports! { acl::lifecycle, code;
    fn aclFinalize() {
        finalize()
    }
}

/// Ends the use of ACL. Streams stay, because a program may still wait for their tasks.
fn finalize() -> crate::Outcome {
    if !runtime().initialized.swap(false, Ordering::AcqRel) {
        return Err(ACL_ERROR_UNINITIALIZE);
    }
    let outcome = runtime().listeners.finalize();
    if let Some(truth) = truth() {
        truth.flush();
    }
    outcome
}

/// Returns the text of the calling thread's last error, which is valid until its next error.
// SAFETY: the simulator replaces the library that exports this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn aclGetRecentErrMsg() -> *const c_char {
    let text = LAST_ERROR.try_with(|last| {
        let last = last.borrow();
        if last.is_empty() {
            None
        } else {
            Some(last.as_ptr())
        }
    });
    text.ok().flatten().unwrap_or(std::ptr::null())
}

const _: ascend_sys::acl::init::aclGetRecentErrMsg = aclGetRecentErrMsg;

// SAFETY: the simulator replaces the library that exports this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn aclrtGetSocName() -> *const c_char {
    match config().soc {
        Soc::A2 => c"Ascend910B2".as_ptr(),
        Soc::A5 => c"Ascend950PR".as_ptr(),
    }
}

const _: ascend_sys::acl::init::aclrtGetSocName = aclrtGetSocName;

exports! { acl::profiler, code;
    fn aclprofInit(path: *const c_char, _length: usize) {
        path.not_null()
    }

    fn aclprofFinalize() {
        runtime().profiling.store(false, Ordering::Relaxed);
        Ok(())
    }

    fn aclprofStart(config: *const aclprofConfig) {
        config.not_null()?;
        fail_if(mspti().has_channels(), ACL_ERROR_FAILURE)?;
        match runtime().profiling.swap(true, Ordering::Relaxed) {
            true => Err(ACL_ERROR_REPEAT_INITIALIZE),
            false => Ok(()),
        }
    }

    fn aclprofStop(config: *const aclprofConfig) {
        config.not_null()?;
        match runtime().profiling.swap(false, Ordering::Relaxed) {
            true => Ok(()),
            false => Err(ACL_ERROR_UNINITIALIZE),
        }
    }
}
