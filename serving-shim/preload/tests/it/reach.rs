//! What is hidden from the library is said: in the trace, and in the summary of a merge.

use crate::ground::{Ground, end, preload, preloads};
use crate::trace::Trace;
use serde_json::{Value, json};
use std::path::Path;

/// What a process says in which everything reaches the library.
fn all() -> Value {
    json!({"by_linking": true, "by_handle": true})
}

fn ground() -> Ground {
    let ground = Ground::with_fakes();
    ground.program("reach", &["reach.c"], &["-l:libascendcl.so"]);
    ground
}

/// The program below these preloaded libraries, recording.
fn below(ground: &Ground, libraries: &[&Path], arguments: &[&str]) -> Trace {
    let mut command = ground.recorded(ground.path("reach"));
    command
        .args(arguments)
        .env("LD_PRELOAD", preloads(libraries));
    command.env("SA_PROFILE_THREADS", "0");
    let ended = end(command.env("FAKE_QUIET", "1"));
    assert_eq!((ended.code, &*ended.stderr), (42, ""), "{ended:?}");
    assert!(ended.stdout.starts_with("errno 77, "), "{ended:?}");
    if libraries.len() == 1 {
        assert_eq!(ended.stdout, "errno 77, dlerror kept\n");
    }
    ground.trace()
}

#[test]
fn where_everything_is_seen_nothing_is_said() {
    let ground = ground();
    let trace = below(&ground, &[&preload()], &[]);
    assert_eq!(trace.count("aclmdlRIExecuteAsync"), 1);
    assert_eq!(trace.reach(), [&all()]);
    assert!(trace.hidden().is_empty());
    // A program may give its own events the same name.
    let mut files = std::fs::read_dir(ground.run().join("fragments")).unwrap();
    let (path, text) = files
        .find_map(|file| {
            let path = file.unwrap().path();
            let text = std::fs::read_to_string(&path).ok()?;
            text.contains("sa_reach").then_some((path, text))
        })
        .unwrap();
    let line = text.lines().find(|line| line.contains("sa_reach")).unwrap();
    let line = line.replace(r#""cat":"sa_profile""#, r#""cat":"app""#);
    let line = line.replace(r#""by_handle":true"#, r#""by_handle":false"#);
    std::fs::write(path, format!("{text}{line}\n")).unwrap();
    let trace = ground.trace();
    assert_eq!((trace.reach().len(), trace.hidden().len()), (2, 0));
}

#[test]
fn each_child_that_launches_has_looked_for_itself() {
    let ground = ground();
    let trace = below(&ground, &[&preload()], &["fork"]);
    assert_eq!(trace.count("aclmdlRIExecuteAsync"), 3);
    assert_eq!(trace.reach(), [&all(); 3]);
}

#[test]
fn a_dlsym_before_ours_is_said_if_it_hides_ours() {
    let ground = ground();
    for (name, option, hidden) in [
        ("libhook.so", "-DALONE", true),
        ("libasks.so", "-DNEXT", false),
    ] {
        ground.library(name, "dlsym_hook.c", &[option]);
        let hook = ground.path(name);
        let trace = below(&ground, &[&hook, &preload()], &[]);
        let seen = usize::from(!hidden);
        assert_eq!(trace.count("aclmdlRIExecuteAsync"), seen, "{name}");
        assert_eq!(trace.count("aclrtMemcpyAsync"), 1);
        let expected = json!({"by_linking": true, "by_handle": !hidden, "dlsym": hook});
        assert_eq!(trace.reach(), [&expected]);
        let words = format!(
            "may not be visible: the dlsym of {} stands before that of libsa_profile_preload.so",
            hook.display()
        );
        let said = trace.hidden();
        assert_eq!(said.len(), usize::from(hidden), "{said:?}");
        assert!(said.iter().all(|line| line.contains(&words)), "{said:?}");
        std::fs::remove_dir_all(ground.run()).unwrap();
    }
}

#[test]
fn an_interposer_is_said_where_it_comes_first() {
    let ground = ground();
    for (name, words) in [
        ("libinterposer.so", "not visible if it keeps them to itself"),
        ("libmspti.so", "must stand before it in LD_PRELOAD"),
    ] {
        ground.library(name, "interposer.c", &[] as &[&str]);
        let other = ground.path(name);
        let trace = below(&ground, &[&preload(), &other], &[]);
        assert_eq!(trace.reach(), [&all()]);
        assert!(trace.hidden().is_empty());
        std::fs::remove_dir_all(ground.run()).unwrap();
        let trace = below(&ground, &[&other, &preload()], &[]);
        let expected = json!({
            "by_linking": false, "by_handle": true, "interposed": ["kernels", "waits"], "first": other
        });
        assert_eq!(trace.reach(), [&expected]);
        let [said] = &trace.hidden()[..] else {
            panic!("{:?}", trace.hidden())
        };
        let calls = "some calls of kernels and waits go to ";
        assert!(said.contains(calls) && said.contains(words), "{said}");
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
