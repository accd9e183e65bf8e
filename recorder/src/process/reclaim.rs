//! Who uses the recorder of this process, so that the memory of one that has ended can be given back.
//!
//! A [`Shell`] holds one recorder after the other and is never freed. A user outside of an event counts itself in the shell, and then looks again
//! whether the recorder is still the current one. An event is known by its thread's state. What neither of them holds can go.

use std::ops::Deref;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::process::state::Process;

static CURRENT: AtomicPtr<Shell> = AtomicPtr::new(std::ptr::null_mut());
/// Every shell. Only who starts the recorder changes the list.
static SHELLS: AtomicPtr<Shell> = AtomicPtr::new(std::ptr::null_mut());

/// A place for a recorder.
struct Shell {
    users: AtomicU32,
    process: AtomicPtr<Process>,
    next: *const Shell,
}

/// A recorder that stays while this is held.
#[derive(Debug)]
pub(crate) struct ProcessRef {
    process: &'static Process,
    /// Number of users of its shell, this one included.
    users: &'static AtomicU32,
}

impl ProcessRef {
    /// The recorder for a thread state that is bound to it.
    ///
    /// # Safety
    /// The reference is used only while this or another [`ProcessRef`] is held, or inside an event on a thread state of the recorder's epoch.
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

/// The recorder that was started last, be it the parent's in the child of a fork.
pub(crate) fn last() -> Option<ProcessRef> {
    loop {
        let at = CURRENT.load(Ordering::SeqCst);
        // SAFETY: a non-null pointer came from `Box::leak`.
        let shell: &'static Shell = unsafe { at.as_ref() }?;
        shell.users.fetch_add(1, Ordering::SeqCst);
        // Only what is counted before this second look is sure to stay.
        if CURRENT.load(Ordering::SeqCst) == at {
            // SAFETY: the current shell has a recorder, and who frees recorders spares it, and what was counted while it was current.
            let process = unsafe { &*shell.process.load(Ordering::SeqCst) };
            let users = &shell.users;
            return Some(ProcessRef { process, users });
        }
        shell.users.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The recorder of this process if it has one, be it one that has ended.
pub(crate) fn existing() -> Option<ProcessRef> {
    last().filter(|process| process.is_own())
}

/// Makes a recorder the current one. One thread at a time comes here.
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

/// Frees the recorders of this process that have ended and that nobody uses any more; `are_out_of` tells whether no thread is inside an event of a
/// recording. One thread at a time comes here.
pub(crate) fn reap(are_out_of: impl Fn(u32) -> bool) {
    let pid = std::process::id();
    let current = CURRENT.load(Ordering::SeqCst).cast_const();
    for shell in shells().filter(|shell| !std::ptr::eq(*shell, current)) {
        let at = shell.process.load(Ordering::SeqCst);
        // SAFETY: only this function frees, and it takes the pointer out first.
        let Some(process) = (unsafe { at.as_ref() }) else {
            continue;
        };
        // What a fork copied may have been half freed, and its users are not here to go away.
        let is_used = process.pid != pid
            || !are_out_of(process.epoch())
            || shell.users.load(Ordering::SeqCst) > 0;
        if is_used {
            continue;
        }
        shell.process.store(std::ptr::null_mut(), Ordering::SeqCst);
        // SAFETY: it came from `Box::into_raw`; it is not the current one, so that nobody can begin to use it, and nobody does.
        let process = unsafe { Box::from_raw(at) };
        process.let_go_of_files(); // where somebody hung in them when it ended
        drop(process);
    }
}
