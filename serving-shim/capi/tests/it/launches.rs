//! Launches from C, without a device's runtime and with a small one in C.

use crate::stage::{C, PACKAGE, Stage, Trace, has, run};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

#[test]
fn launches_are_spans_of_the_host_and_runs_with_two_walls_slices_of_the_device() {
    if !has(
        "cc",
        "launches_are_spans_of_the_host_and_runs_with_two_walls_slices_of_the_device",
    ) {
        return;
    }
    let stage = Stage::new();
    let program = stage.program("launches.c");
    let mut command = stage.command(&program);
    command
        .env("SA_PROFILE_DIR", stage.run_directory())
        .env("SA_PROFILE_DEVICE", "off");
    let trace = Trace::of(&stage.run_directory(), run(&mut command));
    let matmul = &trace.one("matmul")["args"];
    assert_eq!(
        (&matmul["grid"], &matmul["m"], &matmul["dtype"]),
        (&json!(24), &json!(64), &json!("bf16"))
    );
    assert_eq!((matmul.get("late"), matmul.get("error")), (None, None));
    assert_eq!(trace.one("refused")["args"]["error"], 107_003);
    assert_eq!(
        (&trace.one("(null)")["ph"], &trace.one("(null)")["cat"]),
        (&json!("X"), &json!("kernel"))
    );
    assert_eq!(trace.one("own thread")["args"].get("elsewhere"), None);
    let open = trace.one("open at fork");
    assert_eq!(
        (
            &open["ph"],
            open["args"].get("error"),
            open["args"].get("by")
        ),
        (&json!("X"), None, None)
    );
    assert!(open["pid"] != trace.one("child")["pid"]);
    let runs = trace.named("run");
    let times = |run: &Value| (run["ts"].as_f64().unwrap(), run["dur"].as_f64().unwrap());
    let [(host_ts, host_dur), (ts, dur)] = [times(runs[0]), times(runs[1])];
    assert_eq!(
        (runs.len(), host_dur, dur, ((ts - host_ts) * 1e3).round()),
        (2, 2000.0, 1500.0, 250_000.0),
        "{runs:?}"
    );
    assert!(
        runs[0]["pid"] != runs[1]["pid"] && runs[1]["args"]["uncertainty_us"] == 250.0,
        "{runs:?}"
    );
    assert_eq!(trace.one("host only")["args"]["device_wall_us"], 1500.0);
    assert_eq!(
        trace.named("left open").len(),
        300,
        "unfinished, or ended for lack of room"
    );
}

#[test]
fn a_launch_has_its_slice_on_the_stream_of_the_device() {
    if !has("cc", "a_launch_has_its_slice_on_the_stream_of_the_device") {
        return;
    }
    let stage = Stage::new();
    let program = stage.program("device.c");
    let mut cc = Command::new("cc");
    cc.args(C)
        .args(["-shared", "-fPIC"])
        .arg(Path::new(PACKAGE).join("tests/c/runtime.c"));
    run(cc.arg("-o").arg(stage.path().join("libascendcl.so")));
    let mut command = stage.command(&program);
    for variable in ["ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"] {
        command.env_remove(variable);
    }
    command
        .env("SA_PROFILE_DIR", stage.run_directory())
        .env("SA_PROFILE_DEVICE", "ascend");
    let trace = Trace::of(&stage.run_directory(), run(&mut command));
    let all = trace.named("matmul");
    let of = |on_device: bool| -> Vec<&&Value> {
        let slices = all.iter().filter(|event| event["ph"] == "X");
        slices
            .filter(|event| event["args"].get("device_wall_us").is_some() == on_device)
            .collect()
    };
    let (host, device) = (of(false), of(true));
    assert_eq!((host.len(), device.len()), (20, 20), "{all:?}");
    for slice in &device {
        let own = host
            .iter()
            .find(|span| span["args"]["launch"] == slice["args"]["launch"])
            .unwrap();
        assert!(own["pid"] != slice["pid"], "{own} {slice}");
        assert_eq!(
            (&slice["args"]["layer"], &own["args"]["stream"]),
            (&own["args"]["layer"], &json!(7))
        );
        let microseconds = slice["args"]["device_wall_us"].as_f64().unwrap();
        assert!((200.0..100_000.0).contains(&microseconds), "{slice}");
    }
    let flows = trace
        .events
        .iter()
        .filter(|event| event["cat"] == "HostToDevice");
    assert_eq!(flows.count(), 42, "one to each slice, of two events");
    assert_eq!(trace.named("open at fork").len(), 2, "a span and its slice");
    assert!(
        trace
            .named("failed")
            .iter()
            .all(|span| span["args"]["error"] == 507_015)
    );
    assert_eq!(
        (trace.named("failed").len(), trace.report.losses.events),
        (1, 0)
    );
}
