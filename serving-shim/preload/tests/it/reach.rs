//! What is hidden from the library is said: in the trace, and in the summary of a merge.

use crate::ground::{Ended, Ground, end, preload};
use serde_json::{Value, json};
use std::path::Path;
use trace_merge::{Options, Output};

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
    let lines = text.lines().filter(|line| line.starts_with("reach: "));
    lines.map(str::to_owned).collect()
}

#[test]
fn where_everything_is_seen_nothing_is_said() {
    let ground = ground();
    let ended = below(&ground, &[&preload()]);
    let said = (ended.code, &*ended.stdout, &*ended.stderr);
    assert_eq!(said, (42, "errno 77, dlerror kept\n", ""));
    let trace = ground.trace();
    assert_eq!(trace.count("aclmdlRIExecuteAsync"), 1);
    assert_eq!(trace.reach(), [&all()]);
    assert_eq!(summary(&ground), [""; 0]);
}

#[test]
fn what_a_program_calls_by_that_name_is_its_own() {
    let ground = ground();
    assert_eq!(below(&ground, &[&preload()]).code, 42);
    let files = std::fs::read_dir(ground.run().join("fragments")).unwrap();
    let mut texts = files.filter_map(|file| {
        let path = file.unwrap().path();
        Some((std::fs::read_to_string(&path).ok()?, path))
    });
    let (text, path) = texts.find(|(text, _)| text.contains("sa_reach")).unwrap();
    let line = text.lines().find(|line| line.contains("sa_reach")).unwrap();
    let line = line.replace(r#""cat":"sa_profile""#, r#""cat":"app""#);
    let line = line.replace(r#""by_handle":true"#, r#""by_handle":false"#);
    std::fs::write(path, format!("{text}{line}\n")).unwrap();
    assert_eq!(ground.trace().reach().len(), 2);
    assert_eq!(summary(&ground), [""; 0]);
}

#[test]
fn each_child_that_launches_has_looked_for_itself() {
    let ground = ground();
    let ended = below_with(&ground, &[&preload()], &["fork"]);
    let said = (ended.code, &*ended.stdout, &*ended.stderr);
    assert_eq!(said, (42, "errno 77, dlerror kept\n", ""));
    let trace = ground.trace();
    assert_eq!(trace.count("aclmdlRIExecuteAsync"), 3);
    assert_eq!(trace.reach(), [&all(); 3]);
}

#[test]
fn a_dlsym_that_hides_ours_is_said() {
    let ground = ground();
    ground.library("libhook.so", "dlsym_hook.c", &[] as &[&str]);
    let hook = ground.path("libhook.so");
    let ended = below(&ground, &[&hook, &preload()]);
    assert_eq!((ended.code, &*ended.stderr), (42, ""), "{ended:?}");
    assert!(ended.stdout.starts_with("errno 77, "), "{ended:?}");
    let trace = ground.trace();
    assert_eq!(trace.count("aclmdlRIExecuteAsync"), 0);
    assert_eq!(trace.count("aclrtMemcpyAsync"), 1);
    let expected = json!({"by_linking": true, "by_handle": false, "dlsym": hook});
    assert_eq!(trace.reach(), [&expected]);
    let words = format!(
        "may not be visible: the dlsym of {} stands before that of libsa_profile_preload.so",
        hook.display()
    );
    let [said] = &summary(&ground)[..] else {
        panic!("one line")
    };
    assert!(said.contains(&words), "{said}");
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
    let expected = json!({"by_linking": true, "by_handle": true, "dlsym": hook});
    assert_eq!(trace.reach(), [&expected]);
    assert_eq!(summary(&ground), [""; 0]);
}

#[test]
fn an_interposer_is_said_where_it_comes_first() {
    for (name, words) in [
        ("libinterposer.so", "not visible if it keeps them to itself"),
        ("libmspti.so", "must stand before it in LD_PRELOAD"),
    ] {
        let ground = ground();
        ground.library(name, "interposer.c", &[] as &[&str]);
        let other = ground.path(name);
        let ended = below(&ground, &[&preload(), &other]);
        assert_eq!((ended.code, &*ended.stderr), (42, ""), "{ended:?}");
        assert_eq!(ground.trace().reach(), [&all()]);
        assert_eq!(summary(&ground), [""; 0]);
        std::fs::remove_dir_all(ground.run()).unwrap();
        let ended = below(&ground, &[&other, &preload()]);
        assert_eq!((ended.code, &*ended.stderr), (42, ""), "{ended:?}");
        let expected = json!({
            "by_linking": false, "by_handle": true, "interposed": ["kernels", "waits"], "first": other
        });
        assert_eq!(ground.trace().reach(), [&expected]);
        let [said] = &summary(&ground)[..] else {
            panic!("one line")
        };
        assert!(
            said.contains("some calls of kernels and waits go to "),
            "{said}"
        );
        assert!(said.contains(words), "{said}");
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
