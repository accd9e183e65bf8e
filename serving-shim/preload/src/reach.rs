//! Which functions this library sees in its process, said in the trace at the first launch: what is hidden from it would be missing without a word.
//!
//! A program reaches a wrapper by its name, or by asking `dlsym` for it with the vendor's handle, as torch_npu does. Another library's `dlsym` may stand
//! before ours. So the vendor's libraries are asked in the same way, and what they answer is compared. A thread of its own asks: `dlerror` has one message
//! for each thread, and whoever else's `dlsym` is asked may take as long as it likes.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sa_recorder::format::{REACH_RECORD, Reach};
use sa_recorder::{Args, Recorder, host, now_ns};

use crate::hooks::LISTS;
use crate::real::{Dlsym, first, is_ours, path_of};
use crate::thread::unnoticed;
use crate::wrapper::Hook;

/// How long an exit waits for the thread, and between two looks.
const EXIT_WAIT_NS: u64 = 150_000_000;
const EXIT_NAP: Duration = Duration::from_micros(200);

/// The thread has begun, and has ended.
static BEGUN: AtomicBool = AtomicBool::new(false);
static DONE: AtomicBool = AtomicBool::new(false);

/// Looks, at the first call in the life of the process. One with a single thread may do what the kernel refuses to others, such as to enter a user
/// namespace: there it waits for the exit.
pub(crate) fn look_once() {
    static CALLED: AtomicBool = AtomicBool::new(false);
    if CALLED.load(Ordering::Relaxed) || CALLED.swap(true, Ordering::Relaxed) {
        return;
    }
    host::run_after_fork(after_fork);
    host::run_at_exit(at_exit);
    if !host::is_only_one(0) {
        begin();
    }
}

/// Where no thread begins, nothing is said.
fn begin() {
    let begun = !BEGUN.swap(true, Ordering::AcqRel);
    if begun && host::spawn_quiet("sa-reach", look).is_err() {
        DONE.store(true, Ordering::Release);
    }
}

/// Only the thread that forked goes on in the child.
extern "C" fn after_fork() {
    if BEGUN.load(Ordering::Acquire) {
        DONE.store(true, Ordering::Release);
    }
}

extern "C" fn at_exit() {
    unnoticed(begin);
    let end_ns = now_ns() + EXIT_WAIT_NS;
    while !DONE.load(Ordering::Acquire) && now_ns() < end_ns {
        host::sleep(EXIT_NAP);
    }
}

fn look() {
    unnoticed(|| {
        let reach = found();
        if reach != Reach::default() {
            tell(&reach);
        }
    });
    DONE.store(true, Ordering::Release);
}

fn tell(reach: &Reach) {
    let mut args = Args::new();
    for (key, groups) in [
        ("by_name", &reach.by_name),
        ("by_dlsym", &reach.by_dlsym),
        ("not_by_name", &reach.not_by_name),
        ("not_by_dlsym", &reach.not_by_dlsym),
    ] {
        if !groups.is_empty() {
            args.push(key, groups);
        }
    }
    for (key, path) in [("first", &reach.first), ("dlsym", &reach.dlsym)] {
        if let Some(path) = path {
            args.push(key, path);
        }
    }
    Recorder::get().own_instant(REACH_RECORD, &args);
    // An interposer mostly passes calls on: only the trace speaks of it.
    if let Some(words) = reach.dlsym.as_ref().and(reach.dlsym_words()) {
        host::warn_once(&words);
    }
}

/// Asks for all functions that the vendor's loaded libraries have.
fn found() -> Reach {
    let dlsym = first(c"dlsym").filter(|dlsym| !is_ours(*dlsym));
    let mut reach = Reach {
        dlsym: dlsym.and_then(path),
        ..Reach::default()
    };
    // SAFETY: whoever stands in the place of `dlsym` has its type, for all that call it.
    let asked = dlsym.map(|dlsym| unsafe { std::mem::transmute::<NonNull<c_void>, Dlsym>(dlsym) });
    let asked = asked.unwrap_or(crate::dlsym::dlsym);
    for (group, list) in LISTS
        .iter()
        .filter_map(|(group, list)| Some(((*group)?, list)))
    {
        list.iter()
            .flatten()
            .for_each(|hook| add(&mut reach, group, hook, asked));
    }
    let hidden = |group: &String, from: &[String]| from.contains(group);
    reach
        .by_name
        .retain(|group| !hidden(group, &reach.not_by_name));
    reach
        .by_dlsym
        .retain(|group| !hidden(group, &reach.not_by_dlsym));
    if reach.by_dlsym.is_empty() && reach.not_by_dlsym.is_empty() {
        return Reach::default(); // there is nothing of the vendor's
    }
    reach
}

fn add(reach: &mut Reach, group: &str, hook: &Hook, dlsym: Dlsym) {
    let behind = hook.symbol.behind_handles(dlsym);
    if behind.is_empty() {
        return; // this version has no such function
    }
    let first = hook.symbol.first().filter(|first| !is_ours(*first));
    match first {
        None => add_once(&mut reach.by_name, group),
        Some(other) => {
            add_once(&mut reach.not_by_name, group);
            reach.first = reach.first.take().or_else(|| path(other));
        }
    }
    // A wrapper's address is that of the first one of its name.
    if behind.iter().all(|found| is_ours(*found)) {
        add_once(&mut reach.by_dlsym, group);
    } else if behind
        .iter()
        .any(|found| Some(*found) != first && !is_ours(*found))
    {
        add_once(&mut reach.not_by_dlsym, group);
    }
}

fn add_once(groups: &mut Vec<String>, group: &str) {
    if !groups.iter().any(|known| known == group) {
        groups.push(group.to_owned());
    }
}

/// The path of the object that a function lies in.
fn path(function: NonNull<c_void>) -> Option<String> {
    let path = path_of(function.as_ptr())?;
    Some(path.to_string_lossy().into_owned())
}
