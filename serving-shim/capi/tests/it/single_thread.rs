//! A process with one thread keeps having one, and ends and changes its rights as it does without a recording.

use crate::stage::{program, stage};
use c_programs::{Trace, end, is_root};
use std::ops::RangeInclusive;

/// Runs the program plain and recorded: both ways it must end alike, and its spans must be in the trace.
fn compare(test: &str, what: &str, variables: &[(&str, &str)], spans: RangeInclusive<usize>) {
    if what == "setresuid" && !is_root(test) {
        return;
    }
    let ground = stage();
    let program = program(&ground, "single_thread.c");
    let plain = end(ground.command(&program).arg(what));
    let mut command = ground.recorded(&program);
    let recorded = end(command.envs(variables.iter().copied()).arg(what));
    assert_eq!((recorded, &*plain.stderr), (plain.clone(), ""), "{what}");
    let found = Trace::of(&ground.run()).count("work");
    assert!(spans.contains(&found), "{what}: {found}");
}

const WITH_HELPER: [(&str, &str); 1] = [("SA_PROFILE_THREADS", "1")];

c_programs::cases! {
    compare;
    /// No exit handler runs after `SYS_exit`. The helper ends by itself as the last thread, and the process as it does without one.
    issue_19_the_first_thread_ends_alone_or_with_the_helper:
        ("pthread_exit", &[], 200..=200)
        ("SYS_exit", &[], 100..=100)
        ("pthread_exit", &WITH_HELPER, 200..=1_000_000)
        ("SYS_exit", &WITH_HELPER, 100..=1_000_000);
    /// The first thread never records, and ends before the one that does: with the helper, and without one.
    issue_19_the_first_thread_ends_before_the_one_that_records:
        ("survivor", &[("SA_PROFILE_THREADS", "0")], 300..=300)
        ("survivor", &WITH_HELPER, 300..=300)
        ("survivor", &[], 300..=300);
    issue_19_a_user_namespace_is_entered:
        ("unshare", &[], 300..=300);
    /// A file that we open for a moment has the number that the host's next file should have.
    issue_19_the_numbers_of_the_hosts_files_stay_free:
        ("numbers", &[], 10_200..=10_200)
        ("numbers", &WITH_HELPER, 10_200..=1_000_000);
    /// The C library changes the user of all threads, and aborts where one may and another may not.
    issue_19_rights_are_dropped_by_one_thread:
        ("setresuid", &[], 300..=300);
}

/// The helper comes when there are two threads, or after a while; never where it is not wanted.
#[test]
fn issue_19_the_helper_comes_beside_a_second_thread_and_after_a_while() {
    for what in ["second thread", "a while"] {
        let ground = stage();
        let program = program(&ground, "single_thread.c");
        let outcome = end(ground.recorded(&program).arg(what));
        assert_eq!((outcome.code, &*outcome.stderr), (0, ""), "{what}");
    }
}
