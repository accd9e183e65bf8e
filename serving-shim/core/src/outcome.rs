//! Launches in a closure.

use crate::launch::Launch;
use std::ffi::c_void;

/// What a closure that launches returns.
pub trait Outcome {
    /// The runtime's code; 0 if the launch is in the stream.
    fn code(&self) -> i32;
}

impl Outcome for i32 {
    fn code(&self) -> i32 {
        *self
    }
}

impl Outcome for () {
    fn code(&self) -> i32 {
        0
    }
}

impl<T, E> Outcome for Result<T, E> {
    fn code(&self) -> i32 {
        if self.is_ok() { 0 } else { -1 }
    }
}

/// Times the launch that the closure makes into a stream, which must be one of the calling thread's context; a null stream is its default one.
///
/// The result is the closure's.
pub fn launch_timed<R: Outcome>(stream: *mut c_void, name: &str, launch: impl FnOnce() -> R) -> R {
    let timed = Launch::begin(stream, name, 0);
    let result = launch();
    timed.end(result.code());
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_is_the_closures() {
        assert_eq!(launch_timed(std::ptr::null_mut(), "a", || 107_000), 107_000);
        let failed: Result<(), &str> = Err("no");
        assert_eq!(launch_timed(std::ptr::null_mut(), "a", || failed), failed);
        launch_timed(std::ptr::null_mut(), "a", || {});
    }
}
