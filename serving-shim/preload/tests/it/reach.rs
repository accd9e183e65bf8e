//! What is hidden from the library is said: in the trace, in the summary of a merge, and on stderr.

use crate::ground::{Ended, Ground, end, preload};
use serde_json::{Value, json};
use std::path::Path;
use trace_merge::{Options, Output};

fn ground() -> Ground {
    let ground = Ground::with_fakes();
    ground.program("reach", &["reach.c"], &["-l:libascendcl.so"]);
    ground
}

/// The program below these preloaded libraries, recording.
fn below(ground: &Ground, libraries: &[&Path]) -> Ended {
    below_with(ground, libraries, &[])
}

fn below_with(ground: &Ground, libraries: &[&Path], arguments: &[&str]) -> Ended {
    let list: Vec<String> = libraries
        .iter()
        .map(|library| library.display().to_string())
        .collect();
    let mut command = ground.recorded(ground.path("reach"));
    command.args(arguments).env("LD_PRELOAD", list.join(":"));
    command.env("SA_PROFILE_THREADS", "0");
    end(command.env("FAKE_QUIET", "1"))
}

/// The words of a merge's summary about what is not visible.
fn summary(ground: &Ground) -> Vec<String> {
    let mut options = Options::new([ground.run()]);
    options.output = Output::File(ground.path("summary.json"));
    let text = trace_merge::merge(&options).unwrap().text();
    let lines = text.lines().filter(|line| line.contains("visible"));
    lines.map(str::to_owned).collect()
}

fn has(list: &Value, group: &str) -> bool {
    list.as_array()
        .is_some_and(|list| list.contains(&json!(group)))
}

#[test]
fn by_name_and_by_dlsym_everything_is_seen_and_nothing_is_said() {
    let ground = ground();
    let ended = below(&ground, &[&preload()]);
    let said = (ended.code, &*ended.stdout, &*ended.stderr);
    assert_eq!(said, (42, "errno 77, dlerror kept\n", ""));
    let trace = ground.trace();
    assert_eq!(trace.count("aclmdlRIExecuteAsync"), 1);
    let [reach] = trace.reach()[..] else {
        panic!("one record: {trace:?}")
    };
    for way in ["by_name", "by_dlsym"] {
        for group in ["kernels", "graph replays", "copies", "waits"] {
            assert!(has(&reach[way], group), "{group}: {reach}");
        }
        assert!(!has(&reach[way], "collectives"), "there is no libhccl.so");
    }
    for key in ["not_by_name", "not_by_dlsym", "first", "dlsym"] {
        assert_eq!(reach[key], Value::Null);
    }
    assert_eq!(summary(&ground), [""; 0]);
}

#[test]
fn a_process_of_several_threads_that_never_exits_has_said_it() {
    let ground = ground();
    let ended = below_with(&ground, &[&preload()], &["threads"]);
    let said = (ended.code, &*ended.stdout, &*ended.stderr);
    assert_eq!(said, (42, "errno 77, dlerror kept\n", ""));
    let trace = ground.trace();
    assert!(has(&trace.reach()[0]["by_dlsym"], "graph replays"));
}

#[test]
fn a_dlsym_that_hides_ours_is_said() {
    let ground = ground();
    ground.library("libhook.so", "dlsym_hook.c", &[] as &[&str]);
    let hook = ground.path("libhook.so");
    let ended = below(&ground, &[&hook, &preload()]);
    assert_eq!(ended.code, 42, "{ended:?}");
    let trace = ground.trace();
    assert_eq!(trace.count("aclmdlRIExecuteAsync"), 0);
    let [reach] = trace.reach()[..] else {
        panic!("one record: {trace:?}")
    };
    assert!(has(&reach["by_name"], "graph replays"), "{reach}");
    assert!(has(&reach["not_by_dlsym"], "graph replays"), "{reach}");
    assert_eq!(
        (&reach["by_dlsym"], &reach["dlsym"]),
        (&Value::Null, &json!(hook))
    );
    let words = format!(
        "are not visible: the dlsym of {} stands before that of libsa_profile_preload.so",
        hook.display()
    );
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    assert!(ended.stderr.contains(&words), "{ended:?}");
    let [said] = &summary(&ground)[..] else {
        panic!("one line")
    };
    assert!(
        said.starts_with("reach: ") && said.contains(&words),
        "{said}"
    );
}

#[test]
fn a_dlsym_that_asks_ours_hides_nothing() {
    let ground = ground();
    ground.library("libhook.so", "dlsym_hook.c", &["-DNEXT"]);
    let hook = ground.path("libhook.so");
    let ended = below(&ground, &[&hook, &preload()]);
    assert_eq!((ended.code, &*ended.stderr), (42, ""), "{ended:?}");
    let trace = ground.trace();
    assert_eq!(trace.count("aclmdlRIExecuteAsync"), 1);
    let reach = trace.reach()[0];
    assert!(has(&reach["by_dlsym"], "graph replays"), "{reach}");
    assert_eq!(
        (&reach["not_by_dlsym"], &reach["dlsym"]),
        (&Value::Null, &json!(hook))
    );
    assert_eq!(summary(&ground), [""; 0]);
}

#[test]
fn an_interposer_of_the_same_functions_is_said_in_the_trace_alone() {
    let ground = ground();
    ground.library("libinterposer.so", "interposer.c", &[] as &[&str]);
    let other = ground.path("libinterposer.so");
    for (order, key, first) in [
        ([&preload(), &other], "not_by_dlsym", Value::Null),
        ([&other, &preload()], "not_by_name", json!(other)),
    ] {
        let ended = below(&ground, &order.map(AsRef::as_ref));
        assert_eq!((ended.code, &*ended.stderr), (42, ""), "{ended:?}");
        let trace = ground.trace();
        let reach = trace.reach()[0];
        assert_eq!(reach[key], json!(["kernels", "waits"]), "{reach}");
        assert_eq!((&reach["first"], &reach["dlsym"]), (&first, &Value::Null));
        let said = summary(&ground);
        assert_eq!(said.len(), 1, "{said:?}");
        std::fs::remove_dir_all(ground.run()).unwrap();
    }
}

#[test]
fn without_a_library_of_the_vendors_nothing_is_said() {
    let ground = Ground::new();
    ground.library("libhook.so", "dlsym_hook.c", &[] as &[&str]);
    ground.program("missing", &["missing.c"], &[] as &[&str]);
    let mut command = ground.recorded(ground.path("missing"));
    let preloads = format!("{}:{}", ground.text("libhook.so"), preload().display());
    let ended = end(command.env("LD_PRELOAD", preloads));
    assert_eq!((ended.code, &*ended.stderr), (42, ""), "{ended:?}");
    assert!(ground.trace().reach().is_empty());
}
