//! What leaves the vendor's library otherwise than by returning passes through ours.

use crate::ground::{Ground, end};

#[test]
fn exceptions_and_cancellation_pass_through_and_recording_goes_on() {
    let ground = Ground::new();
    let library = ["-shared", "-fPIC", "-Wl,-soname,libascendcl.so"];
    ground.compile("c++", "libascendcl.so", &["throwing.cc"], &library);
    ground.compile("c++", "catching", &["catching.cc"], &["-l:libascendcl.so"]);
    let plain = end(&mut ground.command(ground.path("catching")));
    let caught = "caught: thrown by the vendor\n";
    let expected = format!("launched 0\n{caught}{caught}launched 0\ncleaned up\ncancelled 1\n");
    assert_eq!((plain.code, plain.stdout.as_str()), (42, expected.as_str()));
    assert_eq!(end(&mut ground.preloaded(ground.path("catching"))), plain);
    assert_eq!(end(&mut ground.recorded(ground.path("catching"))), plain);
    let trace = ground.trace();
    assert_eq!(trace.count("aclrtLaunchKernel"), 4, "also those that threw");
    assert_eq!(trace.count("aclrtSynchronizeStream"), 1);
}

#[test]
fn a_thread_that_is_to_be_cancelled_is_so_in_none_of_our_work() {
    let ground = Ground::new();
    let library = ["-shared", "-fPIC", "-Wl,-soname,libascendcl.so"];
    ground.compile("c++", "libascendcl.so", &["throwing.cc"], &library);
    ground.compile("c++", "pending", &["pending.cc"], &["-l:libascendcl.so"]);
    let plain = end(&mut ground.command(ground.path("pending")));
    let expected = "launched 3, caught 3, cancelled 1\nlaunched 6, caught 6, cancelled 1\n";
    assert_eq!((plain.code, plain.stdout.as_str()), (42, expected));
    assert_eq!(end(&mut ground.preloaded(ground.path("pending"))), plain);
    assert_eq!(end(&mut ground.recorded(ground.path("pending"))), plain);
    let trace = ground.trace();
    assert_eq!(trace.count("aclrtLaunchKernel"), 12);
    assert_eq!(trace.count("marked"), 2);
}

#[test]
fn after_a_jump_out_of_a_call_later_calls_are_recorded() {
    let ground = Ground::new();
    ground.library("libascendcl.so", "jumping_acl.c", &[] as &[&str]);
    ground.program("jumping", &["jumping.c"], &["-l:libascendcl.so"]);
    let plain = end(&mut ground.command(ground.path("jumping")));
    let gave_up = "gave up\n".repeat(3);
    assert_eq!(
        (plain.code, plain.stdout.as_str()),
        (42, format!("{gave_up}waited 0\nwaited 0\n").as_str())
    );
    assert_eq!(end(&mut ground.recorded(ground.path("jumping"))), plain);
    let trace = ground.trace();
    assert_eq!(trace.unfinished("aclrtSynchronizeDevice"), 3);
    assert_eq!(trace.count("aclrtSynchronizeStream"), 2);
}

#[test]
fn issue_19_a_killed_process_keeps_the_args_of_what_it_was_in() {
    let ground = Ground::with_fakes();
    ground.library("libascendcl.so", "killing_acl.c", &[] as &[&str]);
    ground.program("killed", &["killed.c"], &Ground::links());
    let ended = end(&mut ground.recorded(ground.path("killed")));
    assert_eq!(ended.code, -9, "{ended:?}");
    let trace = ground.trace();
    for (name, handle) in [("aclrtSynchronizeStream", "0x52"), ("request", "0x51")] {
        let args = trace.args_of_unfinished(name);
        assert_eq!(args["handle"], handle, "{name}: {args}");
    }
}
