//! Tests what `sa-profile bundle` puts into a bundle and what it leaves out.

use crate::program::{Ended, Ground};
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::Read;
use std::process::Command;

const TPQ: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/perfetto/tpq");
/// Exit code of the script if Perfetto cannot be set up.
const NOT_HERE: i32 = 3;
/// Folder of the files in a bundle.
const FOLDER: &str = "sa-profile-bundle";
/// Parts of every secret of the run. A bundle contains none of them.
const SECRETS: [&str; 6] = ["sk-", "alice", "secret", "cmpl-", "10.1.2.3", "7654321"];

/// Writes the fragment of a process of the host `host`, with secrets wherever a text can be.
fn write_fragment(ground: &Ground, pid: u32, host: &str, events: &[Value]) {
    let metadata = |name: &str, args: Value| json!({ "ph": "M", "pid": pid, "tid": pid, "name": name, "args": args });
    let header = metadata(
        "sa_fragment",
        json!({
            "version": 1, "nonce": format!("{pid:016x}"), "segment": 0, "run": "secret-run", "main": pid == 100, "host": host, "boot_id": host,
            "pid_ns": 1, "time_ns": 1, "monotonic_offset_ns": 0, "pid": pid, "start_time": 1, "exe": "python3.11", "script": "alice-secret.py",
            "ring": "heap", "page_bytes": 4096, "levels": ["e2e"]
        }),
    );
    let anchor = json!({ "monotonic_ns": 1_000_000, "realtime_ns": 1_795_248_902_000_000_000_i64, "uncertainty_ns": 40 });
    let mut lines = vec![
        header,
        metadata("sa_anchor", anchor),
        metadata(
            "process_name",
            json!({ "name": "EngineCore --api-key sk-1" }),
        ),
        metadata(
            "thread_name",
            json!({ "name": "worker of /home/alice/my app/run", "note": "a secret" }),
        ),
    ];
    lines.extend_from_slice(events);
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let folder = ground.path("out/fragments");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(format!("trace.{pid}.jsonl")), text).unwrap();
}

/// Records two processes that put secrets into everything.
fn run_with_secrets() -> Ground {
    let ground = Ground::new();
    let event = |phase: &str, ts: u32, name: &str, args: Value| {
        let mut event = json!({ "ph": phase, "pid": 100, "tid": 100, "ts": ts, "name": name, "cat": "serving", "args": args });
        match phase {
            "X" => event["dur"] = json!(50),
            "i" => event["s"] = json!("t"),
            _ => {}
        }
        event
    };
    let events = [
        event(
            "X",
            1000,
            "http.request",
            json!({ "request_id": "cmpl-alice", "path": "/v1/secret", "prompt": "my secret is sk-2", "status": 200 }),
        ),
        event(
            "i",
            1001,
            "request.queued",
            json!({ "request_id": "cmpl-alice", "prompt_token_ids": [7_654_321], "prompt_tokens": 12 }),
        ),
        event(
            "i",
            1010,
            "request.scheduled",
            json!({ "request_id": "cmpl-alice", "sampling": { "stop": "secret" } }),
        ),
        event(
            "i",
            1020,
            "request.token",
            json!({ "request_id": "cmpl-alice", "user": "alice", "secret/key": 1, "sk-3": 2, "token_id": 7_654_321 }),
        ),
        event(
            "i",
            1040,
            "request.finished",
            json!({ "request_id": "cmpl-alice", "reason": "stop", "output_tokens": 1 }),
        ),
        json!({ "ph": "M", "pid": 100, "tid": 100, "name": "engine_settings", "args": {
            "max_num_seqs": 2, "engine": "vllm", "engine_version": "0.11.0", "graph_mode": "NONE", "model": "/home/alice/secret-model",
            "kv_role": "sk- in a sentence", "capture_sizes": [1, 2]
        } }),
        event(
            "X",
            1050,
            "load \u{2f}home\u{2f}alice\u{2f}secret models\u{2f}weights.bin",
            json!({}),
        ),
        event(
            "X",
            1060,
            "send tcp://10.1.2.3:5555",
            json!({ "batch": 3, "phase": "decode" }),
        ),
        event("C", 1070, "requests", json!({ "running": 1, "waiting": 0 })),
        event("C", 1071, "by client", json!({ "cmpl-1": 1 })),
        event("i", 1072, "chat?key=sk-4", json!({})),
        json!({ "ph": "b", "pid": 100, "tid": 100, "ts": 1080, "id": "secret-id", "name": "generate", "cat": "serving" }),
        json!({ "ph": "e", "pid": 100, "tid": 100, "ts": 1090, "id": "secret-id", "name": "generate", "cat": "serving" }),
    ];
    write_fragment(&ground, 100, "alice-laptop", &events);
    let step = json!({ "ph": "X", "pid": 200, "tid": 200, "ts": 1010, "dur": 20, "name": "execute_step", "cat": "worker", "args": { "request_ids": ["cmpl-alice"] } });
    write_fragment(
        &ground,
        200,
        "alice-server",
        &[step, json!({ "secret": "damage" })],
    );
    ground
}

/// Unpacks a bundle. Returns its files, each with its bytes; the trace is not compressed.
fn unpacked(ground: &Ground, bundle: &str) -> Vec<(String, Vec<u8>)> {
    let mut tar = ground.plain("tar");
    assert!(tar.args(["-xzf", bundle]).status().unwrap().success());
    let files = fs::read_dir(ground.path(FOLDER)).unwrap().map(|file| {
        let path = file.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        if path.extension().is_some_and(|end| end == "gz") {
            bytes.clear();
            let mut text = GzDecoder::new(File::open(&path).unwrap());
            text.read_to_end(&mut bytes).unwrap();
        }
        (
            path.file_name().unwrap().to_str().unwrap().to_owned(),
            bytes,
        )
    });
    files.collect()
}

#[test]
fn a_bundle_has_the_figures_of_a_run_and_none_of_its_secrets() {
    let ground = run_with_secrets();
    let ended = ground.run(&["bundle", "out"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let files = unpacked(&ground, "sa-profile-bundle.tar.gz");
    let mut names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "contents.txt",
            "recording.json",
            "report.html",
            "report.json",
            "report.txt",
            "trace.json.gz"
        ]
    );
    for (name, bytes) in &files {
        let text = String::from_utf8_lossy(bytes);
        for secret in SECRETS {
            assert!(!text.contains(secret), "{secret} in {name}:\n{text}");
        }
        let is_listed = name == "contents.txt" || ended.stdout.contains(name);
        assert!(is_listed, "{name} in {}", ended.stdout);
    }
    assert!(
        ended
            .stdout
            .ends_with("look through it before you attach it.\n")
    );
    let json = |wanted: &str| -> Value {
        let (_, bytes) = files.iter().find(|(name, _)| name == wanted).unwrap();
        serde_json::from_slice(bytes).unwrap()
    };
    let recording = json("recording.json");
    assert_eq!(recording["python"], json!(["python3.11"]));
    assert_eq!(recording["damage_total"], 1);
    let (report, original) = (
        json("report.json"),
        ground.json(&["report", "--json", "out"]),
    );
    assert_eq!(report["requests"], original["requests"].clone());
    assert_eq!(report["request"][0]["request_id"], "r1");
    assert_eq!(report["recorded"]["damaged"], 1);
    // Both hosts have a process with this name.
    let processes = report["recorded"]["processes"].as_array().unwrap();
    let names: Vec<&Value> = processes.iter().map(|process| &process["name"]).collect();
    assert_eq!(names, ["EngineCore[100]", "EngineCore[200]"]);
    let trace = json("trace.json.gz");
    let events = trace["traceEvents"].as_array().unwrap();
    let args = |name: &str| &events.iter().find(|event| event["name"] == name).unwrap()["args"];
    let settings = json!({ "max_num_seqs": 2, "engine": "vllm", "engine_version": "0.11.0", "graph_mode": "NONE", "capture_sizes": [1, 2] });
    assert_eq!(args("engine_settings"), &settings);
    assert_eq!(args("send …"), &json!({ "batch": 3, "phase": "decode" }));
    assert_eq!(args("execute_step"), &json!({ "request_ids": ["r1"] }));
    args("load weights.bin");
    let output = Command::new(TPQ)
        .arg("--check")
        .arg(ground.path("sa-profile-bundle/trace.json.gz"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(NOT_HERE) => eprint!("SKIPPED Perfetto's check of a bundle's trace: {said}"),
        code => assert_eq!(
            code,
            Some(0),
            "{said}{}",
            String::from_utf8_lossy(&output.stdout)
        ),
    }
}

#[test]
fn losses_are_in_a_bundle_and_only_a_bundle_is_replaced() {
    let ground = Ground::new();
    ground.lossy_host();
    fs::write(ground.path("mine.gz"), "mine").unwrap();
    let refused = ground.run(&["bundle", "out", "-o", "mine.gz"]);
    let why = "mine.gz: expected a new name, or a bundle of this program, found another file, which is not replaced";
    assert_eq!(refused, Ended::refusal(why));
    for _ in 0..2 {
        assert_eq!(
            ground.run(&["bundle", "out", "-o", "b.tar.gz"]).code,
            Some(0)
        );
    }
    let files = unpacked(&ground, "b.tar.gz");
    let text = |wanted: &str| {
        let (_, bytes) = files.iter().find(|(name, _)| name == wanted).unwrap();
        String::from_utf8_lossy(bytes)
    };
    let recording: Value = serde_json::from_str(&text("recording.json")).unwrap();
    let report: Value = serde_json::from_str(&text("report.json")).unwrap();
    assert!(recording["lost_events"].as_u64() > Some(0));
    assert_eq!(report["recorded"]["lost_events"], recording["lost_events"]);
    assert_eq!(recording["losses"][0]["cause"], "disk_bound");
}
