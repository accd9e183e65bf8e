//! Programs in Go: they start threads and handle signals by themselves, past the C library; a static one is not preloaded, what it starts is.

use super::subject::{Subject, Way};

#[test]
fn a_dynamic_program_in_go() {
    let Some(subject) = Subject::new("a_dynamic_program_in_go", &["gron"]) else {
        return;
    };
    let numbers: Vec<String> = (0..2000).map(|n| format!("{{\"n\":{n}}}")).collect();
    let json = subject.ground.path("numbers.json");
    std::fs::write(&json, format!("[{}]", numbers.join(","))).unwrap();
    let ended = subject.assert_the_same("gron", &[json.to_str().unwrap()]);
    assert_eq!((ended.code, ended.stdout.lines().count()), (0, 4001));
}

#[test]
fn a_static_program_in_go_that_executes_another() {
    let test = "a_static_program_in_go_that_executes_another";
    let Some(subject) = Subject::new(test, &["gosu", "sh"]) else {
        return;
    };
    let script = "(echo inside; exit 4); echo $?; exit 6";
    let own = std::env::var("USER").unwrap_or_else(|_| "root".to_owned());
    let ended = subject.assert_the_same("gosu", &[&own, "sh", "-c", script]);
    assert_eq!((ended.code, ended.stdout.as_str()), (6, "inside\n4\n"));
    assert!(subject.launches(Way::Recording).1 >= 2);
}
