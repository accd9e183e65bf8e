//! Cancellation of the host's threads, which must not begin to unwind inside the recorder.

/// Keeps the thread from being cancelled until it is dropped, because the recorder's system calls
/// are cancellation points that the host's call does not have. A cancellation requested meanwhile
/// takes effect at the host's next cancellation point.
#[derive(Debug)]
pub struct Uncancelled(libc::c_int);

impl Uncancelled {
    /// Forbids cancellation of the calling thread until the returned value is dropped.
    pub fn begin() -> Uncancelled {
        const DISABLE: libc::c_int = 1; // PTHREAD_CANCEL_DISABLE of glibc and musl
        let mut before = 0;
        // SAFETY: the C library knows this state, and `before` has room for the previous one.
        unsafe { pthread_setcancelstate(DISABLE, &raw mut before) };
        Uncancelled(before)
    }
}

impl Drop for Uncancelled {
    fn drop(&mut self) {
        let mut ours = 0;
        // SAFETY: the C library returned this state, and `ours` has room for the current one.
        unsafe { pthread_setcancelstate(self.0, &raw mut ours) };
    }
}

unsafe extern "C-unwind" {
    // The `libc` crate lacks this function. It unwinds when it enables the cancellation of a thread
    // whose type is asynchronous.
    fn pthread_setcancelstate(state: libc::c_int, before: *mut libc::c_int) -> libc::c_int;
}
