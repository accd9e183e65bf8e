//! Every other way a process ends while its threads record: the same guarantees as after a kill.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test says what it found, and fails where it stands"
)]

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::Ordering::Acquire;
use std::time::{Duration, Instant};

use e2e::chance::{Chance, rounds};
use e2e::ledger::{Seen, judge};
use e2e::merged;
use e2e::order::{Ending, Order, Pattern};
use e2e::verdict::Verdict;
use e2e::victim::Victim;
use format_oracle::reader::read_dir_as;

const VICTIM: &str = env!("CARGO_BIN_EXE_victim");
const THREADS: usize = 4;

/// Ends `count` victims in one way, at random moments, and judges what each left.
fn end_many(
    ending: Ending,
    pattern: Pattern,
    count: usize,
    signal: Option<i32>,
    expected: impl Fn(ExitStatus) -> bool,
) {
    let mut chance = Chance::new();
    let seed = chance.seed;
    let (mut second, mut merge) = (Verdict::default(), Verdict::default());
    for _ in 0..count {
        let mut victim = Victim::start(
            VICTIM,
            Order {
                threads: THREADS,
                pattern,
                ending,
            },
        )
        .unwrap();
        victim.wait_ready().unwrap();
        std::thread::sleep(chance.pause(Duration::from_millis(20)));
        let status = finish_victim(&mut victim, signal);
        let words = victim.words().unwrap();
        assert!(expected(status), "{ending:?}: ended with {status}: {words}");
        assert!(
            !words.contains("sa-profile"),
            "{ending:?}: the recorder had something to say: {words}"
        );
        let seen = Seen::by_second_reader(read_dir_as(&victim.directory()));
        let read = judge(&seen, &victim.progress, THREADS);
        let merged = merged::merge(&victim.directory(), &victim.scratch("trace.json"));
        let merged = judge(&merged, &victim.progress, THREADS);
        if !(read.is_clean() && merged.is_clean()) {
            println!(
                "kept in {}\n  reader {read}\n  merge {merged}",
                victim.keep().display()
            );
        }
        second += read;
        merge += merged;
    }
    println!(
        "END {ending:?} {pattern:?} signal={signal:?} ends={count} seed={seed}\n  second reader: {second}\n  merge: {merge}"
    );
    assert!(second.acknowledged > 0 && second.is_clean() && merge.is_clean());
}

/// Tells the victim to end, or sends it the signal, and waits for its end.
fn finish_victim(victim: &mut Victim, signal: Option<i32>) -> ExitStatus {
    match signal {
        Some(signal) => {
            let signal = nix::sys::signal::Signal::try_from(signal).unwrap();
            let pid = nix::unistd::Pid::from_raw(victim.pid().try_into().unwrap());
            nix::sys::signal::kill(pid, signal).unwrap();
        }
        None => {
            if victim.order.ending == Ending::ThreadsEnd {
                wait_for_threads(victim);
            }
            victim.go();
        }
    }
    victim.wait_end().unwrap()
}

/// Waits until the threads have recorded all they were going to.
fn wait_for_threads(victim: &Victim) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while (0..THREADS).any(|thread| victim.progress.acknowledged(thread).load(Acquire) < 20_000) {
        assert!(Instant::now() < deadline, "the threads did not end");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn died_of(signal: i32) -> impl Fn(ExitStatus) -> bool {
    move |status| status.signal() == Some(signal)
}

fn exited_with(code: i32) -> impl Fn(ExitStatus) -> bool {
    move |status| status.code() == Some(code)
}

#[test]
fn abort() {
    end_many(
        Ending::Abort,
        Pattern::Flat,
        rounds(3),
        None,
        died_of(libc::SIGABRT),
    );
    end_many(
        Ending::Abort,
        Pattern::Nested,
        rounds(3),
        None,
        died_of(libc::SIGABRT),
    );
}

#[test]
fn quick_exit() {
    end_many(
        Ending::QuickExit,
        Pattern::Flat,
        rounds(3),
        None,
        exited_with(7),
    );
    end_many(
        Ending::QuickExit,
        Pattern::Nested,
        rounds(3),
        None,
        exited_with(7),
    );
}

#[test]
fn sigterm() {
    end_many(
        Ending::Never,
        Pattern::Flat,
        rounds(3),
        Some(libc::SIGTERM),
        died_of(libc::SIGTERM),
    );
    end_many(
        Ending::Never,
        Pattern::Nested,
        rounds(3),
        Some(libc::SIGTERM),
        died_of(libc::SIGTERM),
    );
}

#[test]
fn segv() {
    end_many(
        Ending::Segv,
        Pattern::Flat,
        rounds(3),
        None,
        died_of(libc::SIGSEGV),
    );
    end_many(
        Ending::Segv,
        Pattern::Nested,
        rounds(3),
        None,
        died_of(libc::SIGSEGV),
    );
}

#[test]
fn exit_while_others_record() {
    end_many(Ending::Exit, Pattern::Flat, rounds(6), None, exited_with(8));
    end_many(
        Ending::Exit,
        Pattern::Nested,
        rounds(6),
        None,
        exited_with(8),
    );
    end_many(
        Ending::Exit,
        Pattern::Churn,
        rounds(6),
        None,
        exited_with(8),
    );
}

#[test]
fn exit_from_a_recording_thread() {
    end_many(
        Ending::ExitFromThread,
        Pattern::Flat,
        rounds(6),
        None,
        exited_with(8),
    );
}

#[test]
fn panic_out_of_main() {
    end_many(
        Ending::Panic,
        Pattern::Flat,
        rounds(3),
        None,
        exited_with(101),
    );
    end_many(
        Ending::Panic,
        Pattern::Nested,
        rounds(3),
        None,
        exited_with(101),
    );
}

#[test]
fn return_without_joining() {
    end_many(
        Ending::Return,
        Pattern::Flat,
        rounds(3),
        None,
        exited_with(0),
    );
    end_many(
        Ending::Return,
        Pattern::Nested,
        rounds(3),
        None,
        exited_with(0),
    );
}

#[test]
fn threads_that_ended_unjoined() {
    end_many(
        Ending::ThreadsEnd,
        Pattern::Flat,
        rounds(3),
        None,
        exited_with(0),
    );
}

#[test]
fn finish_while_others_record() {
    end_many(
        Ending::Finish,
        Pattern::Flat,
        rounds(6),
        None,
        exited_with(0),
    );
    end_many(
        Ending::Finish,
        Pattern::Nested,
        rounds(6),
        None,
        exited_with(0),
    );
}
