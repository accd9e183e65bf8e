//! A process with one thread still has only one while it is recorded, and ends and changes its rights as it does without a recording.

use crate::stage::{program, stage};
use c_programs::{Trace, end, is_root};
use std::ops::RangeInclusive;

/// Runs the program with and without a recording. Both must end in the same way, and its spans must be in the trace.
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
    let found = Trace::merge(&ground.run()).count("work");
    assert!(spans.contains(&found), "{what}: {found}");
}

const WITH_HELPER: [(&str, &str); 1] = [("SA_PROFILE_THREADS", "1")];

c_programs::cases! {
    compare;
    /// No exit handler runs after `SYS_exit`. If the helper is the last thread, it ends by itself, and the process ends as it does without a helper.
    issue_19_the_first_thread_ends_alone_or_with_the_helper:
        ("pthread_exit", &[], 200..=200)
        ("SYS_exit", &[], 100..=100)
        ("pthread_exit", &WITH_HELPER, 200..=1_000_000)
        ("SYS_exit", &WITH_HELPER, 100..=1_000_000);
    /// The first thread never records and ends before the one that does, with and without the helper.
    issue_19_the_first_thread_ends_before_the_one_that_records:
        ("survivor", &[("SA_PROFILE_THREADS", "0")], 300..=300)
        ("survivor", &WITH_HELPER, 300..=300)
        ("survivor", &[], 300..=300);
    issue_19_a_user_namespace_is_entered:
        ("unshare", &[], 300..=300);
    /// Even a file that we open only for a moment would use the number that the host's next file should get.
    issue_19_the_numbers_of_the_hosts_files_stay_free:
        ("numbers", &[], 10_200..=10_200)
        ("numbers", &WITH_HELPER, 10_200..=1_000_000);
    /// The C library changes the user of all threads, and aborts if only some of them have the right to.
    issue_19_rights_are_dropped_by_one_thread:
        ("setresuid", &[], 300..=300);
}

/// The helper starts when there is a second thread, or after a while.
#[test]
fn issue_19_the_helper_starts_with_a_second_thread_or_after_a_while() {
    for what in ["second thread", "a while"] {
        let ground = stage();
        let program = program(&ground, "single_thread.c");
        let outcome = end(ground.recorded(&program).arg(what));
        assert_eq!((outcome.code, &*outcome.stderr), (0, ""), "{what}");
    }
}
