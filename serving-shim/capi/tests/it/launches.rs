//! Launches from C, without a device's runtime and with the simulated one.

use crate::stage::{C, Stage, Trace, built, run};
use serde_json::{Value, json};

#[test]
fn launches_are_spans_of_the_host_and_runs_with_two_walls_slices_of_the_device() {
    let stage = Stage::new();
    let program = stage.program("launches.c");
    let mut command = stage.command(&program);
    command
        .env("SA_PROFILE_DIR", stage.run_directory())
        .env("SA_PROFILE_DEVICE", "off");
    let trace = Trace::of(&stage.run_directory(), run(&mut command));
    let id = |name: &str| &trace.one(name)["args"]["launch"];
    let args = |name: &str| {
        let mut args = trace.one(name)["args"].clone();
        args.as_object_mut().unwrap().remove("launch");
        args
    };
    let untimed = "no_device";
    assert_eq!(
        args("matmul"),
        json!({"grid": 24, "m": 64, "dtype": "bf16", "not_timed": untimed})
    );
    assert_eq!(
        args("refused"),
        json!({"error": 107_003, "not_timed": untimed})
    );
    for name in ["own thread", "open at fork"] {
        assert_eq!(args(name), json!({"not_timed": untimed}), "{name}");
    }
    assert!(id("matmul") != id("refused"));
    trace.assert_fields(&[
        ("(null)", &["ph", "cat"], json!(["X", "kernel"])),
        ("open at fork", &["ph"], json!(["X"])),
    ]);
    assert!(trace.one("open at fork")["pid"] != trace.one("child")["pid"]);
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
    let stage = Stage::new();
    let simulator = stage.path().join("libascendcl.so");
    std::os::unix::fs::symlink(built().join("libascendcl.so"), &simulator).unwrap();
    let declarations = concat!(
        "-I",
        env!("CARGO_MANIFEST_DIR"),
        "/../../ascend-sys/sim/tests/conformance"
    );
    let flags = [&C[..], &[declarations]].concat();
    let mut objects = stage.objects("cc", &flags, &["device.c"]);
    objects.push(simulator.clone());
    let program = stage.link("cc", &objects);
    let mut command = stage.command(&program);
    command
        .env("SA_PROFILE_DIR", stage.run_directory())
        .env("SA_PROFILE_DEVICE", "sim")
        .env("ASCEND_SIM_KERNEL_US", "300")
        .env("SA_PROFILE_SIM_LIBRARY", simulator);
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
            (&own["args"]["layer"], &json!(0))
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
