//! Launches from C, without a device's runtime and with the simulated one.

use crate::stage::{C, LIBRARY, program, stage};
use c_programs::{SIMULATED, success};
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[test]
fn launches_are_spans_on_the_host_and_runs_with_two_walls_are_also_slices_on_the_device() {
    let ground = stage();
    let mut command = ground.recorded(program(&ground, "launches.c"));
    success(command.env("SA_PROFILE_DEVICE", "off"));
    let trace = ground.trace();
    let mut ids = Vec::new();
    for (name, expected) in [
        ("matmul", json!({"grid": 24, "m": 64, "dtype": "bf16"})),
        ("refused", json!({"error": 107_003})),
        ("(null)", json!({})),
        ("own thread", json!({})),
        ("open at fork", json!({})),
    ] {
        let launch = trace.only(name);
        assert_eq!(launch["ph"], "X", "{name}");
        assert_eq!(launch["cat"], "kernel", "{name}");
        let mut args = launch["args"].clone();
        let launch_args = args.as_object_mut().unwrap();
        ids.extend(launch_args.remove("launch"));
        assert_eq!(launch_args.remove("not_timed"), Some(json!("no_device")));
        assert_eq!(args, expected, "{name}");
    }
    assert!(ids.len() == 5 && ids[0] != ids[1], "{ids:?}");
    assert!(trace.only("open at fork")["pid"] != trace.only("child")["pid"]);
    let [host, device] = trace.named("run")[..] else {
        panic!("{:?}", trace.named("run"))
    };
    let us = |event: &Value, key: &str| event[key].as_f64().unwrap();
    assert_eq!((us(host, "dur"), us(device, "dur")), (2000.0, 1500.0));
    let offset_ns = ((us(device, "ts") - us(host, "ts")) * 1e3).round();
    assert_eq!(offset_ns, 250_000.0);
    assert!(host["pid"] != device["pid"]);
    assert_eq!(device["args"]["uncertainty_us"], 250.0);
    assert_eq!(trace.only("host only")["args"]["device_wall_us"], 1500.0);
    // 256 are unfinished, and the rest were ended because there was no room.
    assert_eq!(trace.named("left open").len(), 300);
}

#[test]
fn a_launch_has_a_slice_on_its_stream_of_the_device() {
    let ground = stage();
    ground.link("libascendcl.so", "libascendcl.so");
    let flags = [&C[..], &LIBRARY, &SIMULATED].concat();
    let program = ground.program("program", &["device.c"], &flags);
    let mut command = ground.recorded(program);
    command
        .env("SA_PROFILE_DEVICE", "sim")
        .env("ASCEND_SIM_KERNEL_US", "300")
        .env("SA_PROFILE_SIM_LIBRARY", ground.path("libascendcl.so"));
    success(&mut command);
    let trace = ground.trace();
    let (device, host): (Vec<&Value>, Vec<&Value>) = trace
        .with("name", "matmul")
        .into_iter()
        .partition(|event| event["args"].get("device_wall_us").is_some());
    assert_eq!((host.len(), device.len()), (20, 20));
    let launch = |event: &Value| event["args"]["launch"].as_u64().unwrap();
    let host: BTreeMap<u64, &Value> = host.into_iter().map(|span| (launch(span), span)).collect();
    for slice in device {
        let own = host[&launch(slice)];
        assert!(own["pid"] != slice["pid"], "{own} {slice}");
        assert_eq!(slice["args"]["layer"], own["args"]["layer"]);
        assert_eq!(own["args"]["stream"], 0);
        let microseconds = slice["args"]["device_wall_us"].as_f64().unwrap();
        assert!((200.0..100_000.0).contains(&microseconds), "{slice}");
    }
    let flows = trace.events.iter();
    let flows = flows.filter(|event| event["cat"] == "HostToDevice");
    assert_eq!(flows.count(), 42, "one flow of two events to each slice");
    assert_eq!(trace.named("open at fork").len(), 2, "a span and its slice");
    assert_eq!(trace.only("failed")["args"]["error"], 507_015);
}
