//! Cancellation of the host's threads: none may begin to unwind inside the recorder.

/// Keeps the thread from being cancelled until it is dropped: system calls of ours are cancellation points that the host's call does not have. Where
/// cancellation is asked for meanwhile, it takes effect at the host's next one.
#[derive(Debug)]
pub struct Uncancelled(libc::c_int);

impl Uncancelled {
    /// Remembers whether the thread may be cancelled, and forbids it.
    pub fn keep() -> Uncancelled {
        const DISABLE: libc::c_int = 1; // PTHREAD_CANCEL_DISABLE of glibc and musl
        let mut before = 0;
        // SAFETY: a state that the C library knows, and room for the one before.
        unsafe { pthread_setcancelstate(DISABLE, &raw mut before) };
        Uncancelled(before)
    }
}

impl Drop for Uncancelled {
    fn drop(&mut self) {
        let mut ours = 0;
        // SAFETY: the state that the C library gave, and room for our own.
        unsafe { pthread_setcancelstate(self.0, &raw mut ours) };
    }
}

unsafe extern "C-unwind" {
    // Not in the `libc` crate. Unwinds when it permits the cancellation of a thread whose type is asynchronous.
    fn pthread_setcancelstate(state: libc::c_int, before: *mut libc::c_int) -> libc::c_int;
}
