//! Counts the users of the recorder of this process, so that the memory of one that has ended can
//! be freed.
//!
//! A [`Shell`] holds one recorder after the other and is never freed. A user outside an event first
//! counts itself in the shell, and then checks again that the recorder is still the current one. An
//! event is detected through its thread's state. A recorder with neither a user nor an event can be
//! freed.

use std::ops::Deref;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::process::state::Process;

static CURRENT: AtomicPtr<Shell> = AtomicPtr::new(std::ptr::null_mut());
/// List of all shells. Only the thread that starts the recorder changes it.
static SHELLS: AtomicPtr<Shell> = AtomicPtr::new(std::ptr::null_mut());

/// A place for a recorder.
struct Shell {
    users: AtomicU32,
    process: AtomicPtr<Process>,
    next: *const Shell,
}

/// A reference that keeps a recorder from being freed.
#[derive(Debug)]
pub(crate) struct ProcessRef {
    process: &'static Process,
    /// Number of users of the recorder's shell, including this one.
    users: &'static AtomicU32,
}

impl ProcessRef {
    /// Returns the recorder with a static lifetime, to be stored in the state of a thread that is
    /// bound to it.
    ///
    /// # Safety
    ///
    /// The reference is used only while this or another [`ProcessRef`] is held, or inside an event
    /// on a thread state of the recorder's epoch.
    pub(crate) unsafe fn for_thread(&self) -> &'static Process {
        self.process
    }
}

impl Clone for ProcessRef {
    fn clone(&self) -> ProcessRef {
        self.users.fetch_add(1, Ordering::SeqCst);
        ProcessRef {
            process: self.process,
            users: self.users,
        }
    }
}

impl Drop for ProcessRef {
    fn drop(&mut self) {
        self.users.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Deref for ProcessRef {
    type Target = Process;

    fn deref(&self) -> &Process {
        self.process
    }
}

/// Returns the recorder that was started last, or `None` if none was. In the child of a fork this
/// may be the parent's.
pub(crate) fn last() -> Option<ProcessRef> {
    loop {
        let at = CURRENT.load(Ordering::SeqCst);
        // SAFETY: a non-null pointer came from `Box::leak`.
        let shell: &'static Shell = unsafe { at.as_ref() }?;
        shell.users.fetch_add(1, Ordering::SeqCst);
        // Only a user that is counted before this second check keeps the recorder from being freed.
        if CURRENT.load(Ordering::SeqCst) == at {
            // SAFETY: the current shell has a recorder. `reap` frees neither the current one, nor
            // one whose user was counted while it was current.
            let process = unsafe { &*shell.process.load(Ordering::SeqCst) };
            let users = &shell.users;
            return Some(ProcessRef { process, users });
        }
        shell.users.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Returns the recorder of this process, even one that has ended. Returns `None` if none was
/// started here.
pub(crate) fn existing() -> Option<ProcessRef> {
    last().filter(|process| process.is_own())
}

/// Makes a recorder the current one, which [`last`] returns from now on. Callers make sure that
/// only one thread at a time calls this.
pub(crate) fn install(process: Box<Process>) {
    let process = Box::into_raw(process);
    let free = shells().find(|shell| shell.process.load(Ordering::SeqCst).is_null());
    let shell = free.unwrap_or_else(add);
    shell.process.store(process, Ordering::SeqCst);
    CURRENT.store(std::ptr::from_ref(shell).cast_mut(), Ordering::SeqCst);
}

fn add() -> &'static Shell {
    let shell = Box::leak(Box::new(Shell {
        users: AtomicU32::new(0),
        process: AtomicPtr::default(),
        next: SHELLS.load(Ordering::Acquire),
    }));
    SHELLS.store(shell, Ordering::Release);
    shell
}

fn shells() -> impl Iterator<Item = &'static Shell> {
    // SAFETY: every pointer of the list came from `Box::leak`.
    let first = unsafe { SHELLS.load(Ordering::Acquire).as_ref() };
    // SAFETY: as above.
    std::iter::successors(first, |shell| unsafe { shell.next.as_ref() })
}

/// Frees the recorders of this process that have ended and have no users any more.
/// `no_thread_inside` gets the epoch of a recording, and returns true if no thread is inside one of
/// its events. Callers make sure that only one thread at a time calls this.
pub(crate) fn reap(no_thread_inside: impl Fn(u32) -> bool) {
    let pid = std::process::id();
    let current = CURRENT.load(Ordering::SeqCst).cast_const();
    for shell in shells().filter(|shell| !std::ptr::eq(*shell, current)) {
        let at = shell.process.load(Ordering::SeqCst);
        // SAFETY: only this function frees recorders, and it removes the pointer first.
        let Some(process) = (unsafe { at.as_ref() }) else {
            continue;
        };
        // A recorder that a fork copied may be half freed, and its users do not exist in this
        // process.
        let is_used = process.pid != pid
            || !no_thread_inside(process.epoch())
            || shell.users.load(Ordering::SeqCst) > 0;
        if is_used {
            continue;
        }
        shell.process.store(std::ptr::null_mut(), Ordering::SeqCst);
        // SAFETY: it came from `Box::into_raw`. It is not the current one, so nothing can begin to
        // use it, and nothing does.
        let process = unsafe { Box::from_raw(at) };
        process.release_files(); // in case a thread hung in them when the recording ended
        drop(process);
    }
}
