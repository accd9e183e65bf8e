//! A global allocator that reports running out of memory with a clear message, instead of an abort.
#![expect(
    unsafe_code,
    reason = "an allocator is unsafe to implement; this one forwards all calls to the system's"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;

/// Exit status of a command that fails.
const STATUS: i32 = 2;

/// The system allocator, but a failed allocation prints a line to stderr and exits with status 2. Only for programs that never handle a failed allocation
/// themselves.
#[derive(Clone, Copy, Debug)]
pub struct OrExit(
    /// Name of the program, printed in that line.
    pub &'static str,
);

// SAFETY: all calls are forwarded to the system's allocator, which fulfils the contract. A failure does not return.
unsafe impl GlobalAlloc for OrExit {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller fulfils the contract of this function.
        self.checked(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller fulfils the contract of this function.
        self.checked(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, new_bytes: usize) -> *mut u8 {
        // SAFETY: the caller fulfils the contract of this function.
        self.checked(
            unsafe { System.realloc(memory, layout, new_bytes) },
            new_bytes,
        )
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller fulfils the contract of this function.
        unsafe { System.dealloc(memory, layout) };
    }
}

impl OrExit {
    #[inline(always)]
    fn checked(&self, memory: *mut u8, bytes: usize) -> *mut u8 {
        if memory.is_null() {
            self.exit(bytes);
        }
        memory
    }

    /// Exits without allocating and without running exit handlers.
    #[cold]
    fn exit(&self, bytes: usize) -> ! {
        let mut line = [0; 160];
        let mut rest = &mut line[..];
        // A line that is too long is truncated.
        let _ = writeln!(
            rest,
            "{}: out of memory: {bytes} bytes more were needed",
            self.0
        );
        let left = rest.len();
        let used = line.len() - left;
        // SAFETY: the line has at least this many bytes.
        let _ = unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), used) };
        // SAFETY: this ends the process and does nothing else.
        unsafe { libc::_exit(STATUS) }
    }
}
