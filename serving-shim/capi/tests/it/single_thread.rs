//! A process with one thread keeps having one, and ends and changes its rights as it does without a recording.

use crate::stage::{Stage, Trace};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// No program here takes so long unless it hangs.
const DEADLINE: Duration = Duration::from_secs(60);

/// The output of a command, which must end.
fn output(command: &mut Command) -> Output {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > DEADLINE {
            child.kill().unwrap();
            panic!("{command:?} never ends");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

/// Runs the program plain and recorded: both ways it must end alike, and its spans must be in the trace.
fn compare(what: &str, variables: &[(&str, &str)], spans: std::ops::RangeInclusive<usize>) {
    let stage = Stage::new();
    let program = stage.program("single_thread.c");
    let plain = output(stage.command(&program).arg(what));
    let recorded = record(&stage, &program, what, variables);
    assert_eq!(recorded, plain, "{what}");
    let trace = Trace::of(&stage.run_directory(), String::new());
    let found = trace.named("work").len();
    assert!(spans.contains(&found), "{what}: {found}");
    assert_eq!(trace.report.losses.events, 0, "{what}");
}

fn record(stage: &Stage, program: &Path, what: &str, variables: &[(&str, &str)]) -> Output {
    let mut command = stage.command(program);
    command.env("SA_PROFILE_DIR", stage.run_directory());
    output(command.envs(variables.iter().copied()).arg(what))
}

const WITH_HELPER: [(&str, &str); 1] = [("SA_PROFILE_THREADS", "1")];

/// A test for each case: what the program does, the variables of each run, and how many spans it has.
macro_rules! cases {
    ($($(#[$doc:meta])* $test:ident: $([$what:literal, $variables:expr, $spans:expr])*;)*) => {
        $($(#[$doc])*
        #[test]
        fn $test() {
            $(compare($what, &$variables, $spans);)*
        })*
    };
}

cases! {
    issue_19_the_first_thread_ends_alone:
        ["pthread_exit", [], 200..=200]
        ["SYS_exit", [], 100..=100]; // no exit handler runs
    /// The helper ends by itself as the last thread, and the process as it does without one.
    issue_19_the_helper_is_no_last_thread:
        ["helper, pthread_exit", WITH_HELPER, 200..=1_000_000]
        ["helper, SYS_exit", WITH_HELPER, 100..=1_000_000];
    /// The first thread never records, and ends before the one that does: with the helper, and without one.
    issue_19_the_first_thread_ends_before_the_one_that_records:
        ["survivor", [("SA_PROFILE_THREADS", "0")], 300..=300]
        ["survivor", WITH_HELPER, 300..=300]
        ["survivor", [], 300..=300];
    issue_19_a_user_namespace_is_entered:
        ["unshare", [], 300..=300];
    /// A file that we open for a moment has the number that the host's next file should have.
    issue_19_the_numbers_of_the_hosts_files_stay_free:
        ["numbers", [], 10_200..=10_200]
        ["helper, numbers", WITH_HELPER, 10_200..=1_000_000];
}

/// The C library changes the user of all threads, and aborts where one may and another may not.
#[test]
fn issue_19_rights_are_dropped_by_one_thread() {
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        return crate::stage::skip("issue_19_rights_are_dropped_by_one_thread", "not root");
    }
    compare("setresuid", &[], 300..=300);
}

/// The helper comes when there are two threads, or after a while; never where it is not wanted.
#[test]
fn issue_19_the_helper_comes_beside_a_second_thread_and_after_a_while() {
    for what in ["second thread", "a while"] {
        let stage = Stage::new();
        let program = stage.program("single_thread.c");
        let outcome = record(&stage, &program, what, &[]);
        assert!(outcome.status.success(), "{what}: {outcome:?}");
        assert_eq!(outcome.stderr, b"", "{what}");
    }
}
