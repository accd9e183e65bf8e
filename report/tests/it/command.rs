//! The command `trace-report`.

use crate::golden::fixture;
use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_trace-report"))
        .args(arguments)
        .output()
        .unwrap()
}

fn stdout(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_screen_says_what_was_recorded_first() {
    let path = fixture("serving.json");
    let text = stdout(&[path.to_str().unwrap()]);
    let heads =
        ["recorded ", "missing ", "requests ", "names "].map(|head| text.find(head).unwrap());
    assert!(heads.is_sorted(), "{text}");
    assert!(
        text.contains("4: 4 ok; 30.0 a second, 97 output tokens a second"),
        "{text}"
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 120),
        "{text}"
    );
}

#[test]
fn tables_come_as_json_and_csv() {
    let path = fixture("serving.json");
    let path = path.to_str().unwrap();
    let json: serde_json::Value = serde_json::from_str(&stdout(&[path, "--json"])).unwrap();
    assert_eq!(
        (
            json["schema"].as_u64(),
            json["request"][0]["request_id"].as_str()
        ),
        (Some(1), Some("r0"))
    );
    let csv = stdout(&[path, "--csv", "request"]);
    assert!(
        csv.starts_with("request_id,status,reason,arrival_ns,queue_ns,"),
        "{csv}"
    );
    assert_eq!(csv.lines().count(), 5);
    assert_eq!(
        csv.lines().nth(1).unwrap().split(',').nth(4),
        Some("500000")
    );
    let csv = stdout(&[path, "--csv", "names", "--by", "process"]);
    assert!(
        csv.lines()
            .nth(1)
            .unwrap()
            .starts_with("api,,thread,request,request,4,4,"),
        "{csv}"
    );
}

#[test]
fn a_window_is_what_the_merge_shows_of_it() {
    let path = fixture("serving.json");
    let path = path.to_str().unwrap();
    let text = stdout(&[path, "--names", "--to", "20ms"]);
    assert!(text.contains("names      1 of 1 by tsub"), "{text}");
    let all = stdout(&[path, "--json"]);
    let part = stdout(&[path, "--json", "--request", "r1"]);
    let requests = |text: &str| {
        let json: serde_json::Value = serde_json::from_str(text).unwrap();
        json["request"].as_array().unwrap().len()
    };
    assert_eq!((requests(&all), requests(&part)), (4, 1));
}

#[test]
fn bad_input_is_said() {
    let output = run(&["/no/such/run"]);
    assert_eq!(output.status.code(), Some(2));
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(
        words.starts_with("trace-report: ") && words.contains("/no/such/run"),
        "{words}"
    );
    assert_eq!(run(&[]).status.code(), Some(2));
    assert_eq!(
        run(&["x", "--json", "--csv", "request"]).status.code(),
        Some(2)
    );
}

#[test]
fn files_of_others_are_written_to_a_folder() {
    let path = fixture("serving.json");
    let path = path.to_str().unwrap();
    let folder = tempfile::TempDir::new().unwrap();
    for (format, names) in [
        (
            "nat",
            [
                "all_requests_profiler_traces.json",
                "inference_optimization.json",
                "standardized_data_all.csv",
                "workflow_profiling_metrics.json",
            ],
        ),
        (
            "msserviceprofiler",
            ["batch.csv", "forward.csv", "kvcache.csv", "request.csv"],
        ),
    ] {
        let out = folder.path().join("new").join(format);
        let export = format!("{format}={}", out.display());
        let output = run(&[path, "--export", &export]);
        let words = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{words}");
        assert!(output.stdout.is_empty());
        let folder = out.display();
        assert!(
            words.starts_with(&format!("trace-report: {folder}: ")),
            "{words}"
        );
        let mut found: Vec<String> = std::fs::read_dir(&out)
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        found.sort();
        assert_eq!(found, names);
        // Once more over the files that are there.
        assert!(run(&[path, "--export", &export]).status.success());
    }
    let output = run(&[path, "--export", "nat"]);
    let words = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        words.contains("expected collapsed, speedscope, callgrind, nat=FOLDER"),
        "{words}"
    );
}

#[test]
fn an_export_that_fails_leaves_what_was_there() {
    let path = fixture("serving.json");
    let path = path.to_str().unwrap();
    let folder = tempfile::TempDir::new().unwrap();
    let out = folder.path().join("out");
    let export = format!("nat={}", out.display());
    // The folder is looked at before the run is.
    std::fs::write(&out, "").unwrap();
    let words = String::from_utf8(run(&["/no/such/run", "--export", &export]).stderr).unwrap();
    assert!(words.contains(out.to_str().unwrap()), "{words}");
    std::fs::remove_file(&out).unwrap();
    assert!(!run(&["/no/such/run", "--export", &export]).status.success());
    assert!(!out.exists());
    // One of the later files cannot be put.
    std::fs::create_dir_all(out.join("inference_optimization.json")).unwrap();
    std::fs::write(out.join("standardized_data_all.csv"), "old").unwrap();
    assert!(!run(&[path, "--export", &export]).status.success());
    let table = std::fs::read_to_string(out.join("standardized_data_all.csv"));
    assert_eq!(table.unwrap(), "old");
    assert_eq!(std::fs::read_dir(&out).unwrap().count(), 2);
}
