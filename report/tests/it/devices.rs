//! Devices in traces of other profilers: which there are, how busy, and who launched what they did. Expected values come from the generators of the traces,
//! which know what they planted, and from a plain union.

use crate::golden::{of_lines, report};
use crate::oracle::Numbers;
use format_oracle::writer::{Fragment, Process};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use trace_merge::{Options, Output, Progress, merge};
use trace_report::live::LiveReader;
use trace_report::{
    DeviceIdle, DeviceTime, IdleCause, ReportOptions, RowKind, RunReport, read, screen,
};

const CALLS: u64 = 4711;
/// A frame of vLLM's worker.
const STEP: &str = "vllm/v1/worker/gpu_worker.py(642): execute_model";

fn fixture(name: &str) -> PathBuf {
    let merge = Path::new(env!("CARGO_MANIFEST_DIR")).join("../merge");
    merge.join("tests/fixtures/foreign").join(name)
}

fn meta(pid: impl Into<Value>, name: &str, key: &str, value: impl Into<Value>) -> Value {
    json!({"ph": "M", "pid": pid.into(), "tid": 0, "name": name, "args": {key: value.into()}})
}

fn process(pid: impl Into<Value> + Clone, name: &str, labels: &str) -> [Value; 2] {
    [
        meta(pid.clone(), "process_name", "name", name),
        meta(pid, "process_labels", "labels", labels),
    ]
}

fn span(pid: impl Into<Value>, tid: u64, cat: &str, name: &str, (ts, dur): (f64, f64)) -> Value {
    json!({"ph": "X", "pid": pid.into(), "tid": tid, "cat": cat, "name": name, "ts": ts, "dur": dur})
}

fn with_args(mut event: Value, args: Value) -> Value {
    event["args"] = args;
    event
}

/// Kineto's events of a process `python3` with one GPU.
fn kineto(events: impl IntoIterator<Item = Value>) -> Vec<Value> {
    let mut lines = process(CALLS, "python3", "CPU").to_vec();
    lines.extend(process(0, "python3", "GPU 0"));
    lines.extend(process(1, "python3", "GPU 1"));
    lines.extend(events);
    lines
}

/// The only device of a report.
fn device(report: &RunReport) -> &DeviceTime {
    let [device] = report.device.as_slice() else {
        panic!("{:?}", report.device)
    };
    device
}

/// Length of a union of intervals, and its longest gap.
fn union_ns(intervals: &[(i64, i64)]) -> (i64, i64) {
    let mut intervals = intervals.to_vec();
    intervals.sort_unstable();
    let (mut covered, mut longest) = (0, 0);
    let mut to = intervals.first().map_or(0, |first| first.0);
    for (start, end) in intervals {
        longest = longest.max(start - to);
        covered += (end - start.max(to)).max(0);
        to = to.max(end);
    }
    (covered, longest)
}

fn has(device: &DeviceTime, intervals: &[(i64, i64)]) {
    let (busy_ns, longest_gap_ns) = union_ns(intervals);
    let starts = intervals.iter().map(|(start, _)| *start);
    let ends = intervals.iter().map(|(_, end)| *end);
    let wall_ns = ends.max().unwrap() - starts.min().unwrap();
    let times = [device.busy_ns, device.longest_gap_ns, device.wall_ns];
    assert_eq!(times, [busy_ns, longest_gap_ns, wall_ns]);
    assert_eq!(device.slices, intervals.len() as u64);
}

fn causes_of(idle: &DeviceIdle) -> BTreeMap<IdleCause, i64> {
    let causes = idle.causes.iter();
    causes.map(|time| (time.cause, time.ns)).collect()
}

fn causes(report: &RunReport) -> BTreeMap<IdleCause, i64> {
    report.idle.iter().flat_map(causes_of).collect()
}

/// The report of a trace that a merge wrote of these files.
fn merged(paths: &[PathBuf]) -> RunReport {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("merged.json");
    merge(&Options {
        output: Output::File(path.clone()),
        settle: false,
        ..Options::new(paths.to_vec())
    })
    .unwrap();
    report(path)
}

fn file(folder: &Path, name: &str, lines: &[Value]) -> PathBuf {
    let path = folder.join(name);
    let trace = json!({"baseTimeNanoseconds": 1_751_410_836_000_000_000_i64, "traceEvents": lines});
    std::fs::write(&path, serde_json::to_vec(&trace).unwrap()).unwrap();
    path
}

/// The first finding of the issue, to the byte.
#[test]
fn issue_48_annotations_on_a_gpu_are_regions_and_no_work() {
    let lines = [
        span(
            0,
            7,
            "gpu_user_annotation",
            "ProfilerStep#6",
            (100.0, 1000.0),
        ),
        span(0, 7, "kernel", "gemm", (100.0, 100.0)),
        span(0, 7, "kernel", "gemm", (1000.0, 100.0)),
    ];
    let mut all = process(0, "python3", "GPU 0").to_vec();
    all.extend(lines);
    let report = of_lines(&all);
    has(device(&report), &[(0, 100_000), (900_000, 1_000_000)]);
    let screen = screen::text(&report);
    assert!(
        screen.contains("20.0 %") && screen.contains("800 µs"),
        "{screen}"
    );
    assert!(screen.contains("ProfilerStep#6 [region]"), "{screen}");
    let kinds: BTreeMap<&str, RowKind> = report
        .names
        .iter()
        .map(|name| (name.name.as_str(), name.row_kind))
        .collect();
    let expected = [
        ("ProfilerStep#6", RowKind::Region),
        ("gemm", RowKind::Track),
    ];
    assert_eq!(kinds, expected.into());
    assert_eq!(
        report.recorded.processes[0].device_name.as_deref(),
        Some("GPU 0 · python3")
    );
}

/// Kineto puts Python frames of threads that it does not know under pid 0, including the steps of vLLM's worker. It also labels GPUs that did nothing.
#[test]
fn issue_48_threads_of_the_host_are_no_device() {
    let report = of_lines(&kineto([
        span(0, 99, "python_function", STEP, (0.0, 5000.0)),
        span(0, 7, "cuda_sync", "Stream Wait Event", (150.0, 700.0)),
        span(0, 7, "kernel", "gemm", (100.0, 50.0)),
        span(0, 7, "gpu_memcpy", "Memcpy HtoD", (900.0, 100.0)),
        span(0, 8, "gpu_memset", "Memset", (940.0, 160.0)),
        span(CALLS, CALLS, "cpu_op", "aten::mm", (0.0, 90.0)),
    ]));
    has(
        device(&report),
        &[
            (100_000, 150_000),
            (900_000, 1_000_000),
            (940_000, 1_100_000),
        ],
    );
    let mut names = report.names.iter();
    let frame = names.find(|name| name.category == "python_function");
    assert_eq!(frame.unwrap().row_kind, RowKind::Thread);
    assert_eq!(report.worker, []);
    assert_eq!(report.recorded.processes[report.device[0].process].pid, 0);
    // The frames alone make no device, and neither do kernels in the category only: our own launches have it.
    for lines in [
        kineto([span(0, 99, "python_function", "run", (0.0, 9.0))]),
        vec![
            span(7, 7, "kernel", "sys_read", (0.0, 9.0)),
            span(7, 7, "kernel", "sys_write", (20.0, 9.0)),
        ],
        vec![
            span(7, 7, "kernel", "launch", (0.0, 9.0)),
            span(7, 7, "cpu_op", "aten::mm", (20.0, 9.0)),
        ],
        vec![
            meta(7, "process_name", "name", "Communication"),
            meta(8, "process_name", "name", "GPU Process"),
            span(7, 7, "", "send", (0.0, 9.0)),
            span(8, 7, "", "swap", (0.0, 9.0)),
        ],
    ] {
        assert_eq!(of_lines(&lines).device, [], "{lines:?}");
    }
}

/// Labels of devices that did nothing, and traces without a device.
#[test]
fn issue_48_only_devices_with_work_are_counted() {
    let step = span(1, 7, "gpu_user_annotation", "step", (0.0, 50.0));
    let gpu = of_lines(&kineto([kernel(10.0, 5.0, 0), step]));
    let counted = screen::text(&gpu).contains(", 1 device or group of tracks\n");
    assert!(counted, "{}", screen::text(&gpu));
    let mut npu = Npu::new(CALLS, Some(1));
    let pid = npu.group("Overlap Analysis", 31);
    npu.span(pid, 1, "Free", (10_000, 30_000), json!({}));
    for report in [npu.report(), report(fixture("kineto.json"))] {
        assert_eq!(report.device, []);
        let screen = screen::text(&report);
        assert!(!screen.contains("of tracks\n"), "{screen}");
    }
}

/// As TraceLens's captures of vLLM and SGLang are.
#[test]
fn issue_48_kernels_without_labels_are_known_by_their_category() {
    let kernel = |args: Value, ts: f64| with_args(span(0, 7, "kernel", "gemm", (ts, 10.0)), args);
    let on_stream = || json!({"device": 0, "stream": 7, "correlation": 5});
    let cases = [
        vec![kernel(on_stream(), 0.0), kernel(on_stream(), 90.0)],
        vec![
            kernel(json!({}), 0.0),
            kernel(json!({}), 90.0),
            span(CALLS, CALLS, "cpu_op", "aten::mm", (0.0, 60.0)),
        ],
        vec![
            kernel(on_stream(), 0.0),
            kernel(on_stream(), 90.0),
            span(0, 99, "python_function", STEP, (0.0, 60.0)),
            span(0, 8, "gpu_user_annotation", "step", (0.0, 100.0)),
        ],
    ];
    for lines in cases {
        let report = of_lines(&lines);
        has(device(&report), &[(0, 10_000), (90_000, 100_000)]);
        assert_eq!(report.worker, []);
    }
}

/// The categories of torch for XPU, MTIA, HPU, ROCm and privateuse1, and those of branches of Kineto.
#[test]
fn issue_48_other_accelerators_have_the_same_work() {
    for (label, work, other) in [
        ("XPU 0", "kernel gpu_memcpy gpu_memset", "xpu_sync"),
        (
            "GPU 0",
            "kernel gpu_memcpy gpu_memset",
            "gpu_user_annotation",
        ),
        (
            "MTIA 0",
            "mtia_ccp_events kernel gpu_memcpy",
            "mtia_insight",
        ),
        ("HPU 0", "hpu_op hpu_op collective_comm", "user_annotation"),
        (
            "MLU 0",
            "kernel mlu_memcpy mlu_memset",
            "mlu_user_annotation",
        ),
        (
            "GCU 0",
            "kernel GCU_MEMCPY GCU_MEMSET",
            "GCU_USER_ANNOTATION",
        ),
    ] {
        let mut lines = process(CALLS, "python3", "CPU").to_vec();
        lines.extend(process(0, "python3", label));
        let work = work.split(' ').zip([0.0, 100.0, 200.0]);
        lines.extend(work.map(|(category, ts)| span(0, 3, category, "op", (ts, 40.0))));
        let whole = (0.0, 900.0);
        lines.push(span(0, 3, other, "wait", whole));
        lines.push(span(CALLS, CALLS, "privateuse1_runtime", "launch", whole));
        let report = of_lines(&lines);
        let work = [0, 100_000, 200_000].map(|start| (start, start + 40_000));
        has(device(&report), &work);
    }
}

#[test]
fn issue_48_the_view_of_an_npu_is_one_device() {
    for report in [
        report(fixture("trace_view.json")),
        merged(&[fixture("trace_view.json")]),
    ] {
        let npu = device(&report);
        // 55.75 µs each from 160.125, 280.5 and 300.25 µs on, and the last two overlap; the first event is at 100.125 µs.
        has(
            npu,
            &[(60_000, 115_750), (180_375, 236_125), (200_125, 255_875)],
        );
        let name = report.recorded.process_name(npu.process);
        assert!(name.starts_with("NPU 0 · Python"), "{name}");
        // Each was launched 50 µs before it began, for 7.25 µs.
        let delay = npu.launch_delay;
        assert_eq!((delay.n, delay.min_ns, delay.max_ns), (3, 50_000, 50_000));
        assert_eq!((npu.short_slices, npu.early_slices), (0, 0));
        // The gap from 115.75 to 180.375 µs; its end was launched at 130.375 µs.
        let expected = [
            (IdleCause::LaunchGap, 14_625),
            (IdleCause::LaunchDelay, 50_000),
        ];
        assert_eq!(causes(&report), expected.into());
        let screen = screen::text(&report);
        assert!(screen.contains("1 device or group of tracks"), "{screen}");
    }
}

/// The groups of an NPU in a trace of msprof or torch_npu.
struct Npu {
    lines: Vec<Value>,
    label: String,
    pid: u64,
    number: u64,
}

impl Npu {
    fn new(pid: u64, number: Option<u64>) -> Npu {
        let mut npu = Npu {
            lines: Vec::new(),
            label: number.map_or("NPU".to_owned(), |number| format!("NPU {number}")),
            pid,
            number: number.unwrap_or(31),
        };
        for (name, kind) in [("Python", 6), ("CANN", 7)] {
            let pid = npu.host(kind);
            npu.lines.extend(process(pid, name, "CPU"));
            npu.lines
                .push(meta(pid, "process_sort_index", "sort_index", kind));
        }
        npu
    }

    fn host(&self, kind: u64) -> u64 {
        self.pid << 10 | kind << 5 | 31
    }

    /// The pid of a group, which is named the first time.
    fn group(&mut self, name: &str, kind: u64) -> u64 {
        let pid = self.pid << 10 | kind << 5 | self.number;
        let named = process(pid, name, &self.label);
        if !self.lines.contains(&named[0]) {
            self.lines.extend(named);
            self.lines
                .push(meta(pid, "process_sort_index", "sort_index", kind));
        }
        pid
    }

    fn row(&mut self, pid: u64, tid: u64, name: &str) {
        self.lines.push(json!({"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": name}}));
    }

    /// An event without a category, with times as texts since 1970, in ns.
    fn span(
        &mut self,
        pid: u64,
        tid: u64,
        name: &str,
        (start_ns, end_ns): (i64, i64),
        args: Value,
    ) {
        self.lines.push(json!({"ph": "X", "pid": pid, "tid": tid, "name": name, "ts": us(start_ns), "dur": (end_ns - start_ns) as f64 / 1e3, "args": args}));
    }

    fn task(&mut self, tid: u64, name: &str, time_ns: (i64, i64), task_type: &str) {
        let pid = self.group("Ascend Hardware", 14);
        let args = json!({"Model Id": 4_294_967_295_u64, "Task Type": task_type, "Physic Stream Id": tid, "Task Id": 3});
        self.span(pid, tid, name, time_ns, args);
    }

    fn report(&self) -> RunReport {
        let file = tempfile::NamedTempFile::with_suffix(".json").unwrap();
        std::fs::write(file.path(), serde_json::to_vec(&self.lines).unwrap()).unwrap();
        report(file.path().to_owned())
    }
}

/// A time since 1970 as torch_npu writes it.
fn us(ns: i64) -> String {
    let ns = 1_795_248_907_000_000_000 + ns;
    format!("{}.{:03}", ns / 1_000, ns % 1_000)
}

#[test]
fn issue_48_groups_of_an_npu_are_one_device_that_works_in_its_tasks_and_collectives() {
    for number in [Some(0), Some(5), None] {
        let mut npu = Npu::new(CALLS, number);
        let hardware = npu.group("Ascend Hardware", 14);
        npu.row(hardware, 2, "Stream 2");
        npu.row(hardware, 100_000, "Step Trace(Model ID:1)");
        npu.task(2, "MatMulV2", (10_000, 30_001), "AI_CORE");
        npu.task(3, "MEMCPY_ASYNC", (25_000, 40_000), "SDMA_SQE");
        npu.task(3, "EVENT_WAIT", (40_000, 90_000), "EVENT_WAIT");
        npu.task(2, "hcom_allReduce__1_0", (60_000, 70_000), "COMMUNICATION");
        let iteration = json!({"Iteration ID": 1});
        npu.span(hardware, 100_000, "Iteration 1", (0, 300_000), iteration);
        let communication = npu.group("Communication", 16);
        npu.row(communication, 0, "Group 0 Communication");
        npu.row(communication, 1, "Plane 0");
        let collective = "hcom_allReduce__1_0";
        npu.span(communication, 0, collective, (55_000, 75_000), json!({}));
        npu.span(communication, 1, "Notify_Wait", (55_000, 60_000), json!({}));
        let others = "Overlap Analysis,Block Detail,AI Core Freq,HBM,A group of 2030";
        for (kind, name) in (17..).zip(others.split(',')) {
            let pid = npu.group(name, kind);
            npu.span(pid, 0, "Free", (0, 400_000), json!({}));
        }
        npu.task(2, "Add", (200_000, 200_500), "AI_VECTOR_CORE");
        let report = npu.report();
        let found = device(&report);
        has(
            found,
            &[
                (10_000, 30_001),
                (25_000, 40_000),
                (60_000, 70_000),
                (55_000, 75_000),
                (200_000, 200_500),
            ],
        );
        assert_eq!(
            (found.communication_ns, found.exposed_communication_ns),
            (20_000, 20_000)
        );
        let label = &npu.label;
        let name = report.recorded.process_name(found.process);
        assert!(name.starts_with(&format!("{label} · Python")), "{name}");
        let mut regions = report.names.clone();
        regions.retain(|name| name.row_kind == RowKind::Region);
        let regions: Vec<&str> = regions.iter().map(|name| &*name.name).collect();
        for name in ["Iteration 1", "Free", "EVENT_WAIT", "Notify_Wait"] {
            assert!(regions.contains(&name), "{name}: {regions:?}");
        }
        assert_eq!(report.worker, []);
    }
}

/// If msprof only shows parts of collectives, these count.
#[test]
fn issue_48_an_npu_has_what_its_trace_shows() {
    let mut npu = Npu::new(CALLS, Some(1));
    let communication = npu.group("HCCL", 16);
    npu.row(communication, 1, "Plane 0");
    npu.span(communication, 1, "Memcpy", (10_000, 30_000), json!({}));
    let report = npu.report();
    has(device(&report), &[(10_000, 30_000)]);
    assert_eq!(device(&report).communication_ns, 20_000);
    // Tasks without a type are known by their names.
    let mut npu = Npu::new(CALLS, Some(1));
    let hardware = npu.group("Ascend Hardware", 14);
    for (name, time_ns) in [
        ("RecordScatter", (0, 10_000)),
        ("EVENT_RECORD", (20_000, 30_000)),
        ("Notify_Wait", (30_000, 40_000)),
        ("WaitAdd", (50_000, 60_000)),
    ] {
        npu.span(hardware, 2, name, time_ns, json!({}));
    }
    has(device(&npu.report()), &[(0, 10_000), (50_000, 60_000)]);
}

/// Two NPUs of one process, and one of another: three devices. A group without a number belongs to the only one that its process has.
#[test]
fn issue_48_npus_of_one_trace_are_told_apart() {
    let mut npus = Npu::new(CALLS, Some(0));
    npus.task(2, "MatMulV2", (10_000, 30_000), "AI_CORE");
    for (pid, number) in [(CALLS, 1), (CALLS + 1, 0)] {
        let mut npu = Npu::new(pid, Some(number));
        npu.task(2, "MatMulV2", (20_000, 50_000), "AI_CORE");
        let overlap = npu.group("Overlap Analysis", 31);
        npu.span(overlap, 2, "Computing", (20_000, 50_000), json!({}));
        npus.lines.extend(npu.lines);
    }
    let devices = npus.report().device;
    let busy = devices.iter().map(|device| device.busy_ns);
    assert_eq!(busy.collect::<Vec<_>>(), [20_000, 30_000, 30_000]);

    let mut npu = Npu::new(CALLS, Some(4));
    npu.task(2, "MatMulV2", (10_000, 30_000), "AI_CORE");
    let mut unnumbered = Npu::new(CALLS, None);
    let communication = unnumbered.group("Communication", 16);
    let time = (40_000, 45_000);
    unnumbered.span(communication, 0, "hcom_send__1", time, json!({}));
    npu.lines.extend(unnumbered.lines);
    has(device(&npu.report()), &[(10_000, 30_000), (40_000, 45_000)]);
}

#[test]
fn issue_48_a_device_is_called_by_its_label() {
    let mut lines = process(3, "NPU 10 and others", "NPU 1").to_vec();
    lines.push(span(3, 1, "", "gemm", (0.0, 5.0)));
    let report = of_lines(&lines);
    let name = report.recorded.process_name(device(&report).process);
    assert_eq!(name, "NPU 1 · NPU 10 and others");
}

#[test]
fn issue_48_xla_shows_work_once() {
    let rows = [
        (1, "Steps"),
        (2, "XLA Modules"),
        (3, "XLA Ops"),
        (4, "Stream #13(Compute)"),
    ];
    let trace = |device: &str, shown: &[usize]| {
        let mut lines = vec![
            meta(3, "process_name", "name", device),
            meta(9, "process_name", "name", "/host:CPU"),
            span(9, 9, "", "PjitFunction(f)", (0.0, 2000.0)),
        ];
        for (tid, name) in shown.iter().map(|nth| rows[*nth]) {
            lines.push(json!({"ph": "M", "pid": 3, "tid": tid, "name": "thread_name", "args": {"name": name}}));
            let (name, times) = match tid {
                1 | 2 => ("jit_f", vec![(100.0, 1000.0)]),
                3 => ("fusion", vec![(100.0, 100.0), (1000.0, 100.0)]),
                _ => ("gemm", vec![(110.0, 80.0), (1000.0, 90.0)]),
            };
            lines.extend(times.into_iter().map(|time| span(3, tid, "", name, time)));
        }
        // A row without events.
        lines.push(json!({"ph": "M", "pid": 3, "tid": 99, "name": "thread_name", "args": {"name": "Stream #99"}}));
        of_lines(&lines)
    };
    let tpu = trace("/device:TPU:0", &[0, 1, 2]);
    has(device(&tpu), &[(100_000, 200_000), (1_000_000, 1_100_000)]);
    assert_eq!(
        tpu.recorded.process_name(tpu.device[0].process),
        "/device:TPU:0"
    );
    let gpu = trace("/device:GPU:1", &[1, 2, 3]);
    has(device(&gpu), &[(110_000, 190_000), (1_000_000, 1_090_000)]);
}

/// A time of a process's clock, in ns from the begin of the traces of [`Npu`].
fn at(process: &Process, ns: i64) -> u64 {
    let anchor: Value = serde_json::from_str(&process.anchor(5_000_000_000)).unwrap();
    let wall_ns = anchor["args"]["realtime_ns"].as_i64().unwrap();
    u64::try_from(5_000_000_000 + 1_795_248_907_000_000_000 - wall_ns + ns).unwrap()
}

/// A process that recorded a step, and sampled launches of 50 µs each on a device. Times are in ns from the begin of the traces of [`Npu`].
fn sampled(process: &Process, host: &str, label: &str, launches_ns: &[i64]) -> Fragment {
    let mut fragment = Fragment::foreign(process.pid);
    let of_host = |line: String| line.replace("node-3", host).replace("0b1f7a3e", host);
    fragment.line(&of_host(process.header(0)));
    // 5 s of the process are 1795248907 s since 1970, when the trace begins.
    fragment.line(&process.anchor(5_000_000_000));
    let at = |ns: i64| at(process, ns);
    let (step, row) = (process.main_thread(), process.thread(1 << 28));
    let name = format!(r#""name":"worker on {host}""#);
    fragment.line(&step.metadata("process_name", &name));
    fragment.line(&step.span(at(0), 900_000, "WorkerWrapperBase.execute_model", ""));
    let track = format!(
        r#""process":"Ascend Hardware {label}","label":"{label}","sort_index":0,"thread":"Stream 2""#
    );
    fragment.line(&row.metadata("sa_track", &track));
    for ns in launches_ns {
        fragment.line(&row.span(
            at(*ns),
            50_000,
            "sampled",
            r#""stands_for":64,"queue_us":3"#,
        ));
    }
    fragment
}

/// A folder for the fragments of a run.
fn run_folder(folder: &Path) -> PathBuf {
    let fragments = folder.join("run/fragments");
    std::fs::create_dir_all(&fragments).unwrap();
    fragments
}

fn read_all(paths: &[PathBuf], threads: usize) -> RunReport {
    let options = Options {
        threads,
        ..Options::new(paths.to_vec())
    };
    read(&options, &ReportOptions::default(), &Progress::default()).unwrap()
}

/// Two launches of 50 µs each, and three records of MSPTI, whose clock is 15 µs late. Two records overlap, because the clock was renewed. The device was busy
/// for 100 µs, not for 135.
#[test]
fn records_of_mspti_count_no_work_twice() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::new(4711);
    let mut fragment = sampled(&process, "node-3", "NPU 0", &[20_000, 500_000]);
    let row = process.thread((1 << 28) + 1);
    let track = r#""process":"Ascend Hardware NPU 0","label":"NPU 0","sort_index":0,"thread":"Stream 2 (MSPTI)""#;
    fragment.line(&row.metadata("sa_track", track));
    for ns in [35_000, 40_000, 515_000] {
        let args = r#""correlation":7,"stream":2,"device_method":"mspti""#;
        fragment.line(&row.span(at(&process, ns), 50_000, "MatMulV2", args));
    }
    fragment.write_here(&run_folder(folder.path()));
    let run = [folder.path().join("run")];
    for report in [read_all(&run, 0), merged(&run)] {
        has(device(&report), &[(20_000, 70_000), (500_000, 550_000)]);
        assert_eq!(device(&report).busy_ns, 100_000);
        let streams: Vec<&str> = report.stream.iter().map(|of| of.name.as_str()).collect();
        assert_eq!(streams, ["Stream 2"]);
        let mut names = report.names.iter().filter(|of| of.name == "MatMulV2");
        let of_records = names.next().unwrap();
        assert_eq!(
            (of_records.row_kind, of_records.ncall),
            (RowKind::Region, 3)
        );
    }
    let mut live = LiveReader::new(&folder.path().join("run/fragments"));
    live.poll();
    let stats = live.stats();
    let busy = stats.device.iter().map(|of| (of.slices, of.busy_ns));
    assert_eq!(busy.collect::<Vec<_>>(), [(2, 100_000)]);
}

/// The kernels of a run whose launches we have sampled, and torch_npu has all for a while.
#[test]
fn issue_48_an_npu_that_two_have_recorded_counts_once() {
    let folder = tempfile::tempdir().unwrap();
    // One before the trace, two of its own kernels, one after it.
    let launches_ns = [20_000, 162_000, 301_000, 500_000];
    let fragment = sampled(&Process::new(4711), "node-3", "NPU 0", &launches_ns);
    fragment.write_here(&run_folder(folder.path()));
    let paths = [folder.path().join("run"), fixture("trace_view.json")];
    for report in [read_all(&paths, 0), merged(&paths)] {
        let npu = device(&report);
        // From the begin of the step on, which is the first event.
        has(
            npu,
            &[
                (20_000, 70_000),
                (160_125, 215_875),
                (280_500, 336_250),
                (300_250, 356_000),
                (500_000, 550_000),
            ],
        );
        // The arrows of the trace lead to calls of its own processes.
        let delay = npu.launch_delay;
        assert_eq!((delay.n, delay.min_ns, delay.max_ns), (5, 3_000, 50_000));
        assert_eq!(report.worker, []);
        // The recorded process is the one that launched.
        let worker = &report.recorded.processes[report.idle[0].worker];
        assert_eq!(worker.pid, 4711);
        assert!(
            !causes(&report).contains_key(&IdleCause::Unknown),
            "{:?}",
            causes(&report)
        );
    }
}

/// The trace has two NPUs of the process, and we have sampled launches of the second.
#[test]
fn issue_48_a_sampled_npu_is_the_one_with_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let fragment = sampled(&Process::new(4711), "node-3", "NPU 1", &[25_000, 500_000]);
    fragment.write_here(&run_folder(folder.path()));
    let mut npus = Npu::new(CALLS, Some(0));
    npus.task(2, "MatMulV2", (10_000, 300_000), "AI_CORE");
    let mut second = Npu::new(CALLS, Some(1));
    second.task(2, "MatMulV2", (20_000, 90_000), "AI_CORE");
    npus.lines.extend(second.lines);
    // Its host is the process that we have recorded, and needs no device of its own.
    let (host, step) = (npus.host(6), "WorkerWrapperBase.execute_model");
    npus.span(host, 1, step, (5_000, 400_000), json!({}));
    let trace = folder.path().join("npus, two.json");
    std::fs::write(&trace, serde_json::to_vec(&npus.lines).unwrap()).unwrap();
    let paths = [folder.path().join("run"), trace];
    for report in [read_all(&paths, 0), merged(&paths)] {
        let [first, second] = report.device.as_slice() else {
            panic!("{:?}", report.device)
        };
        assert_eq!(report.worker, []);
        has(first, &[(10_000, 300_000)]);
        has(second, &[(20_000, 90_000), (500_000, 550_000)]);
    }
}

/// Workers with one pid on two hosts, one of which was killed. The labels of a merge have more than their pids.
#[test]
fn issue_48_a_merged_run_of_two_hosts_has_the_worker_of_each_device() {
    let folder = tempfile::tempdir().unwrap();
    let fragments = run_folder(folder.path());
    for (host, nonce) in [("node-3", 1), ("node-4", 2)] {
        let process = Process {
            nonce,
            ..Process::new(4711)
        };
        let mut fragment = sampled(&process, host, "NPU 0", &[20_000, 500_000]);
        if host == "node-4" {
            let killed = r#""monotonic_ns":5000900000,"open":1,"exit":{"signal":"SIGKILL"}"#;
            fragment.line(&process.main_thread().metadata("sa_end", killed));
        }
        fragment.write(&fragments, host);
    }
    let run = [folder.path().join("run")];
    for report in [read_all(&run, 0), merged(&run)] {
        assert_eq!(report.device.len(), 2);
        assert_eq!(report.worker, []);
        for idle in &report.idle {
            let [device, worker] =
                [idle.process, idle.worker].map(|of| report.recorded.process_name(of));
            assert!(worker.starts_with("worker on node"), "{worker}");
            let worker = worker.split('[').next().unwrap();
            assert!(device.contains(worker), "{device}: {worker}");
        }
    }
}

/// Launches recorded here do not say what a device waits for: they may be sampled. So without an engine nothing changes.
#[test]
fn issue_48_gaps_of_tracks_recorded_here_keep_their_causes() {
    let folder = tempfile::tempdir().unwrap();
    let fragment = sampled(&Process::new(4711), "node-3", "NPU 0", &[20_000, 2_000_000]);
    fragment.write_here(&run_folder(folder.path()));
    let run = [folder.path().join("run")];
    for report in [read_all(&run, 0), merged(&run)] {
        let expected = [
            // The step ends at 900 µs.
            (IdleCause::Preparing, 830_000),
            (IdleCause::Unknown, 1_097_000),
            (IdleCause::LaunchDelay, 3_000),
        ];
        assert_eq!(causes(&report), expected.into());
    }
}

fn call(tid: u64, ts: f64, dur: f64, correlation: u64) -> Value {
    with_args(
        span(CALLS, tid, "cuda_runtime", "cudaLaunchKernel", (ts, dur)),
        json!({"cbid": 211, "correlation": correlation}),
    )
}

fn kernel(ts: f64, dur: f64, correlation: u64) -> Value {
    with_args(
        span(0, 7, "kernel", "gemm", (ts, dur)),
        json!({"device": 0, "stream": 7, "correlation": correlation}),
    )
}

fn arrow(id: u64, from: (u64, f64), to: (u64, f64)) -> [Value; 2] {
    [
        json!({"ph": "s", "id": id, "pid": CALLS, "tid": from.0, "ts": from.1, "cat": "ac2g", "name": "ac2g"}),
        json!({"ph": "f", "id": id, "pid": 0, "tid": to.0, "ts": to.1, "cat": "ac2g", "name": "ac2g", "bp": "e"}),
    ]
}

/// By arrows, by the numbers in the args, and by both: kernels that were launched at 0, 300 and 320 µs and began at 10, 350 and 600 µs.
#[test]
fn issue_48_launches_tell_delays_and_causes() {
    let launched = [(0.0, 10.0), (300.0, 350.0), (320.0, 600.0)];
    for (arrows, numbers) in [(true, false), (false, true), (true, true)] {
        let mut events = Vec::new();
        for ((at, begin), id) in launched.into_iter().zip(11..) {
            let mut both = [call(CALLS, at, 60.0, id), kernel(begin, 50.0, id)];
            if !numbers {
                both.iter_mut()
                    .for_each(|event| event["args"] = json!({"device": 0, "stream": 7}));
            }
            events.extend(both);
            if arrows {
                events.extend(arrow(id, (CALLS, at), (7, begin)));
            }
        }
        let report = of_lines(&kineto(events));
        let gpu = device(&report);
        has(
            gpu,
            &[(10_000, 60_000), (350_000, 400_000), (600_000, 650_000)],
        );
        let delay = gpu.launch_delay;
        assert_eq!((delay.n, delay.min_ns, delay.max_ns), (3, 10_000, 280_000));
        assert!((delay.p50_ns - 50_000.0).abs() < 1e-6, "{delay:?}");
        // A call of 60 µs takes longer than a kernel of 50; arrows do not say how long one took.
        assert_eq!(gpu.short_slices, if numbers { 3 } else { 0 });
        // 60 to 350 µs, launched at 300; and 400 to 600 µs, launched before that began.
        let expected = [
            (IdleCause::LaunchGap, 240_000),
            (IdleCause::LaunchDelay, 250_000),
        ];
        assert_eq!(causes(&report), expected.into());
        let evidence = host_bound(&report);
        assert!(evidence.starts_with("the devices waited"), "{evidence}");
    }
}

/// Gives the events of the host and of the GPU other pids.
fn on_pids(mut events: Vec<Value>, host: Value, gpu: Value) -> Vec<Value> {
    for event in &mut events {
        let is_of_gpu = event["pid"] == json!(0);
        event["pid"] = if is_of_gpu { &gpu } else { &host }.clone();
    }
    events
}

/// Returns the evidence of the finding about launches.
fn host_bound(report: &RunReport) -> &str {
    let mut findings = report.findings.iter();
    &findings
        .find(|finding| finding.rule == "host_bound")
        .unwrap()
        .evidence
}

/// Nothing says which of two processes launched what, and the arrows still lead from one to each GPU.
#[test]
fn issue_48_launches_are_found_if_the_host_is_not_certain() {
    let mut lines = kineto([span(CALLS + 1, 1, "cpu_op", "aten::mm", (0.0, 5.0))]);
    lines.extend(process(CALLS + 1, "python3", "CPU"));
    for (gpu, launch, begin) in [(0, 0.0, 20.0), (1, 5.0, 45.0)] {
        let mut events = vec![call(CALLS, launch, 2.0, 0), kernel(begin, 10.0, 0)];
        events.extend(arrow(gpu + 1, (CALLS, launch), (7, begin)));
        events.push(kernel(100.0, 10.0, 0));
        lines.extend(on_pids(events, json!(CALLS + gpu), json!(gpu)));
    }
    let report = of_lines(&lines);
    let delays = report.device.iter().map(|device| device.launch_delay);
    let delays: Vec<(u64, i64)> = delays.map(|delay| (delay.n, delay.max_ns)).collect();
    assert_eq!(delays, [(1, 20_000), (1, 40_000)]);
}

/// The clocks of host and GPU differ, so a kernel seems to begin 2.5 µs before its launch. A merge reverses its arrow, and the report still finds the launch.
#[test]
fn issue_48_a_kernel_that_begins_before_its_launch_keeps_it_and_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let mut events = vec![
        call(CALLS, 0.0, 5.0, 1),
        kernel(10.0, 20.0, 1),
        call(CALLS, 102.5, 5.0, 2),
        kernel(100.0, 20.0, 2),
        // Their arrows alone say who launched these.
        call(CALLS, 202.5, 5.0, 0),
        kernel(200.0, 20.0, 0),
        call(CALLS, 210.0, 5.0, 0),
        kernel(230.0, 20.0, 0),
    ];
    events.extend(arrow(2, (CALLS, 102.5), (7, 100.0)));
    events.extend(arrow(3, (CALLS, 202.5), (7, 200.0)));
    events.extend(arrow(4, (CALLS, 210.0), (7, 230.0)));
    let path = file(folder.path(), "k.json", &kineto(events));
    for report in [report(path.clone()), merged(&[path])] {
        let gpu = device(&report);
        let delay = gpu.launch_delay;
        assert_eq!((delay.n, delay.min_ns, delay.max_ns), (4, 0, 20_000));
        assert_eq!((gpu.early_slices, gpu.early_ns), (2, 2_500));
        let expected = [
            (IdleCause::LaunchGap, 70_000 + 80_000),
            (IdleCause::LaunchDelay, 10_000),
        ];
        assert_eq!(causes(&report), expected.into());
        let screen = screen::text(&report);
        let caution = "2 slices of devices begin before the launch, by up to 2.500 µs";
        assert!(screen.contains(caution), "{screen}");
    }
}

/// Steps that have a known name give more precise causes than launches alone.
#[test]
fn issue_48_launches_tell_which_step_a_device_waited_for() {
    let mut events = vec![span(CALLS, CALLS, "python_function", STEP, (0.0, 400.0))];
    events.push(span(CALLS, CALLS, "python_function", STEP, (600.0, 300.0)));
    for ((at, begin), id) in [(20.0, 30.0), (200.0, 240.0), (700.0, 720.0)]
        .into_iter()
        .zip(1..)
    {
        events.extend([call(CALLS, at, 5.0, id), kernel(begin, 20.0, id)]);
    }
    let report = of_lines(&kineto(events));
    assert_eq!(report.worker, []);
    let expected = [
        // 50 to 200 between launches; 260 to 400 after the last; 400 to 600 outside; 600 to 700 before the first.
        (IdleCause::LaunchGap, 150_000 + 200_000),
        (IdleCause::LaunchDelay, 40_000 + 20_000),
        (IdleCause::Sampling, 140_000),
        (IdleCause::Preparing, 100_000),
    ];
    assert_eq!(causes(&report), expected.into());
    let evidence = host_bound(&report);
    assert!(evidence.starts_with("in a step, "), "{evidence}");
}

/// SGLang merges the traces of ranks by writing the rank before the pids, and leaves ids and correlations as they are.
#[test]
fn issue_48_ranks_in_one_trace_have_launches_of_their_own() {
    let mut lines = Vec::new();
    for (rank, launched) in [("[TP00-DP00]", 0.0), ("[TP01-DP00]", 30.0)] {
        let [host, gpu] = [format!("{rank} {CALLS}"), format!("{rank} 0")];
        lines.extend(process(host.as_str(), "python3", "CPU"));
        lines.extend(process(gpu.as_str(), "python3", "GPU 0"));
        let mut events = vec![call(CALLS, launched, 5.0, 1), kernel(50.0, 20.0, 1)];
        events.extend(arrow(1, (CALLS, launched), (7, 50.0)));
        lines.extend(on_pids(events, json!(host), json!(gpu)));
    }
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "ranks.json", &lines);
    for report in [report(path.clone()), merged(&[path])] {
        // A text in the place of a pid has no order.
        let delays = report.device.iter();
        let delays: BTreeSet<i64> = delays.map(|device| device.launch_delay.max_ns).collect();
        assert_eq!(delays, [20_000, 50_000].into());
        let hosts: BTreeSet<usize> = report.idle.iter().map(|idle| idle.worker).collect();
        assert_eq!(hosts.len(), 2);
        for idle in &report.idle {
            assert_ne!(idle.worker, idle.process);
        }
    }
}

/// Traces of two ranks, merged and read again, say what each says by itself.
#[test]
fn issue_48_a_merged_trace_has_the_devices_of_its_inputs() {
    let folder = tempfile::tempdir().unwrap();
    let rank = |name: &str, begin: f64| {
        let mut events = vec![
            call(CALLS, 0.0, 5.0, 1),
            kernel(begin, 20.0, 1),
            span(0, 7, "gpu_user_annotation", "step", (begin, 500.0)),
            kernel(700.0, 20.0, 2),
        ];
        events.extend(arrow(1, (CALLS, 0.0), (7, begin)));
        file(folder.path(), name, &kineto(events))
    };
    // With commas in their names, as labels have between their parts.
    let paths = [rank("r0, a.json", 10.0), rank("r1, a.json", 40.0)];
    let own: Vec<RunReport> = paths.iter().cloned().map(report).collect();
    let both = merged(&paths);
    assert_eq!(both.device.len(), 2);
    for (one, alone) in both.device.iter().zip(&own) {
        let figures = |of: &DeviceTime| {
            let delay_ns = of.launch_delay.max_ns;
            (of.slices, of.busy_ns, of.longest_gap_ns, delay_ns)
        };
        assert_eq!(figures(one), figures(device(alone)));
    }
    let idle: Vec<_> = own.iter().flat_map(causes).collect();
    let found = both.idle.iter().flat_map(causes_of);
    assert_eq!(found.collect::<Vec<_>>(), idle);
}

/// The work that was planted on a device, and the delay of each launch.
#[derive(Default)]
struct Planted {
    work: Vec<(i64, i64)>,
    communication: Vec<(i64, i64)>,
    delays: Vec<i64>,
}

/// Times of 1 to 30 µs on `streams` streams one after the other, in whole ns, each with the time from its launch to its begin.
fn work(numbers: &mut Numbers, streams: u64) -> Vec<(u64, (i64, i64), i64)> {
    let mut found = Vec::new();
    for stream in 0..streams {
        let mut at = 50_000 + numbers.below(5_000).cast_signed();
        for _ in 0..60 {
            at += numbers.below(20_000).cast_signed() * numbers.below(3).cast_signed();
            let end = at + 1_000 + numbers.below(29_000).cast_signed();
            found.push((stream, (at, end), numbers.below(40_000).cast_signed()));
            at = end;
        }
    }
    found
}

fn check(report: &RunReport, planted: &Planted) {
    let found = device(report);
    has(found, &planted.work);
    assert_eq!(found.communication_ns, union_ns(&planted.communication).0);
    let mut delays = planted.delays.clone();
    delays.sort_unstable();
    assert_eq!(found.launch_delay.n, delays.len() as u64);
    assert_eq!(Some(&found.launch_delay.min_ns), delays.first());
    assert_eq!(Some(&found.launch_delay.max_ns), delays.last());
    let mean = delays.iter().sum::<i64>() as f64 / delays.len() as f64;
    assert!((found.launch_delay.mean_ns - mean).abs() < 1e-3);
    let idle: i64 = report.idle.iter().map(|idle| idle.idle_ns).sum();
    assert_eq!(idle, found.wall_ns - found.busy_ns);
    assert!(
        !causes(report).contains_key(&IdleCause::Unknown),
        "{:?}",
        causes(report)
    );
}

#[test]
fn issue_48_random_traces_of_kineto_have_the_union_of_their_kernels() {
    for seed in 0..40 {
        let mut numbers = Numbers::new(seed);
        let (mut planted, mut events) = (Planted::default(), Vec::new());
        for ((stream, (start, end), delay), id) in
            work(&mut numbers, 1 + seed % 4).into_iter().zip(1..)
        {
            let us = |ns: i64| ns as f64 / 1e3;
            let category = match numbers.below(4) {
                0 => "gpu_memcpy",
                1 => "gpu_memset",
                _ => "kernel",
            };
            let name = ["gemm", "ncclDevKernel_AllReduce"][usize::from(numbers.below(5) == 0)];
            let mut slice = span(0, stream + 7, category, name, (us(start), us(end - start)));
            slice["args"] = json!({"device": 0, "stream": stream + 7, "correlation": id});
            events.push(slice);
            events.push(call(CALLS + id % 3, us(start - delay), 3.0, id));
            if numbers.below(2) == 0 {
                events.extend(arrow(
                    id,
                    (CALLS + id % 3, us(start - delay)),
                    (stream + 7, us(start)),
                ));
            }
            // An annotation from one kernel on, for whatever it takes.
            if numbers.below(10) == 0 {
                let dur = us(numbers.below(400_000).cast_signed());
                events.push(span(
                    0,
                    stream + 7,
                    "gpu_user_annotation",
                    "forward",
                    (us(start), dur),
                ));
            }
            planted.work.push((start, end));
            planted.delays.push(delay);
            if name.starts_with("nccl") {
                planted.communication.push((start, end));
            }
        }
        events.push(span(0, 5, "python_function", "main", (0.0, 9000.0)));
        let report = of_lines(&kineto(events));
        // Times of a report begin with the first event, which is the Python frame at 0.
        check(&report, &planted);
    }
}

#[test]
fn issue_48_random_traces_of_torch_npu_have_the_union_of_their_kernels() {
    for seed in 0..40 {
        let mut numbers = Numbers::new(1_000 + seed);
        let (mut planted, mut npu) = (Planted::default(), Npu::new(CALLS, Some(seed % 8)));
        let has_group = seed % 2 == 0;
        let [python, cann] = [npu.host(6), npu.host(7)];
        npu.lines.push(json!({"ph": "X", "pid": python, "tid": 1, "name": "main", "ts": us(0), "dur": 9000, "cat": "cpu_op"}));
        let hardware = npu.group("Ascend Hardware", 14);
        for ((stream, time_ns, delay), id) in
            work(&mut numbers, 1 + seed % 4).into_iter().zip(1_u64..)
        {
            let is_collective = numbers.below(5) == 0;
            let launch = time_ns.0 - delay;
            let args = json!({"connection_id": id, "Task Type": "AI_CORE"});
            let (pid, name) = match is_collective && has_group {
                true => (npu.group("Communication", 16), "hcom_allReduce__101_0_1"),
                false if is_collective => (hardware, "hcom_allReduce__101_0_1"),
                false => (hardware, "MatMulV2"),
            };
            npu.span(pid, stream, name, time_ns, args);
            npu.span(
                cann,
                4,
                "AscendCL@aclnnMatmul",
                (launch, launch + 900),
                json!({"connection_id": id}),
            );
            for (category, name, from, at) in [
                ("HostToDevice", format!("HostToDevice{id}"), cann, launch),
                (
                    "async_npu",
                    "torch_to_npu".to_owned(),
                    python,
                    launch - 1_500,
                ),
            ] {
                npu.lines.push(json!({"ph": "s", "pid": from, "tid": 4, "id": id.to_string(), "name": name, "cat": category, "ts": us(at)}));
                npu.lines.push(json!({"ph": "f", "bp": "e", "pid": pid, "tid": stream, "id": id.to_string(), "name": name, "cat": category, "ts": us(time_ns.0)}));
            }
            planted.work.push(time_ns);
            planted.delays.push(delay);
            if is_collective {
                planted.communication.push(time_ns);
            }
        }
        let overlap = npu.group("Overlap Analysis", 31);
        npu.span(overlap, 3, "Free", (0, 5_000_000), json!({}));
        check(&npu.report(), &planted);
    }
}
