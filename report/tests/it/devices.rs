//! Devices in traces of other profilers: which there are, how busy, and who launched what they did. Expected values come from the generators of the traces,
//! which know what they planted, and from a plain union.

use crate::events::events;
use crate::oracle::Numbers;
use crate::reports::{has_words, name_time, of_lines, of_text, only, report};
use crate::traces::case;
use format_oracle::writer::{Fragment, Process};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use trace_merge::{Options, Output, Progress, merge};
use trace_report::live::LiveReader;
use trace_report::{DeviceTime, ReportOptions, RowKind, RunReport, read, screen};

/// Kineto's events of a process `python3`, whose pid is [`CALLS`], with two GPUs.
const KINETO: &str = "P 4711/0 python3 CPU\nP 0/0 python3 'GPU 0'\nP 1/0 python3 'GPU 1'\n";
const CALLS: u64 = 4711;

fn fixture(name: &str) -> PathBuf {
    let merge = Path::new(env!("CARGO_MANIFEST_DIR")).join("../merge");
    merge.join("tests/fixtures/foreign").join(name)
}

fn kineto(text: &str) -> RunReport {
    of_text(&format!("{KINETO}{text}"))
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

/// Checks the work of a device: its intervals in ns, each as `start-end`.
#[track_caller]
fn has(device: &DeviceTime, intervals: &str) {
    let interval = |text: &str| {
        let (start, end) = text.split_once('-').unwrap();
        (start.parse().unwrap(), end.parse().unwrap())
    };
    did(
        device,
        &intervals.split(' ').map(interval).collect::<Vec<_>>(),
    );
}

#[track_caller]
fn did(device: &DeviceTime, intervals: &[(i64, i64)]) {
    let (busy_ns, longest_gap_ns) = union_ns(intervals);
    let starts = intervals.iter().map(|(start, _)| *start);
    let ends = intervals.iter().map(|(_, end)| *end);
    let wall_ns = ends.max().unwrap() - starts.min().unwrap();
    let times = [device.busy_ns, device.longest_gap_ns, device.wall_ns];
    assert_eq!(times, [busy_ns, longest_gap_ns, wall_ns]);
    assert_eq!(device.slices, intervals.len() as u64);
}

/// The time in ns of each cause for which devices were idle.
fn causes(report: &RunReport) -> String {
    let causes = report.idle.iter().flat_map(|idle| &idle.causes);
    let causes: BTreeMap<_, _> = causes.map(|time| (time.cause, time.ns)).collect();
    let words = causes
        .iter()
        .map(|(cause, ns)| format!("{} {ns}", cause.name()));
    words.collect::<Vec<_>>().join(", ")
}

/// The delays of launches: their number, least and most.
fn delays(device: &DeviceTime) -> (u64, i64, i64) {
    let delay = device.launch_delay;
    (delay.n, delay.min_ns, delay.max_ns)
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

/// The reports of these files and of the trace that a merge writes of them.
fn both_ways(paths: &[PathBuf]) -> [RunReport; 2] {
    let options = Options::new(paths.to_vec());
    let read = read(&options, &ReportOptions::default(), &Progress::default());
    [read.unwrap(), merged(paths)]
}

fn file(folder: &Path, name: &str, lines: &[Value]) -> PathBuf {
    let path = folder.join(name);
    let trace = json!({"baseTimeNanoseconds": 1_751_410_836_000_000_000_i64, "traceEvents": lines});
    std::fs::write(&path, serde_json::to_vec(&trace).unwrap()).unwrap();
    path
}

#[test]
fn issue_48_the_view_of_an_npu_is_one_device() {
    for report in both_ways(&[fixture("trace_view.json")]) {
        let npu = only(&report.device);
        // 55.75 µs each from 160.125, 280.5 and 300.25 µs on, and the last two overlap; the first event is at 100.125 µs.
        has(npu, "60000-115750 180375-236125 200125-255875");
        let name = report.recorded.process_name(npu.process);
        assert!(name.starts_with("NPU 0 · Python"), "{name}");
        // Each was launched 50 µs before it began, for 7.25 µs.
        assert_eq!(delays(npu), (3, 50_000, 50_000));
        assert_eq!((npu.short_slices, npu.early_slices), (0, 0));
        // The gap from 115.75 to 180.375 µs; its end was launched at 130.375 µs.
        assert_eq!(causes(&report), "launch_delay 50000, launch_gap 14625");
        has_words(&screen::text(&report), &["1 device or group of tracks"]);
    }
    let without = report(fixture("kineto.json"));
    assert_eq!(without.device, []);
    assert!(!screen::text(&without).contains("of tracks\n"));
}

/// Groups of an NPU, and the kind that their pids contain.
const GROUPS: [(&str, u64); 10] = [
    ("Python", 6),
    ("CANN", 7),
    ("Ascend Hardware", 14),
    ("Communication", 16),
    ("HCCL", 16),
    ("Block Detail", 18),
    ("AI Core Freq", 19),
    ("HBM", 20),
    ("A group of 2030", 21),
    ("Overlap Analysis", 31),
];

/// Returns a trace of an NPU as msprof and torch_npu write it. In the text, the process of an event is the name of a group, and times are in ns.
pub(crate) fn npu(pid: u64, number: Option<u64>, text: &str) -> Vec<Value> {
    let label = number.map_or("NPU".to_owned(), |number| format!("NPU {number}"));
    let mut events = events(text);
    let mut lines = Vec::new();
    for (group, kind) in GROUPS {
        let is_host = kind < 14;
        let number = if is_host { None } else { number };
        let pid = pid << 10 | kind << 5 | number.unwrap_or(31);
        let mut of_group: Vec<&mut Value> = events.iter_mut().collect();
        of_group.retain(|event| event["pid"] == group);
        if is_host || !of_group.is_empty() {
            let label = if is_host { "CPU" } else { &label };
            lines.extend(self::events(&format!("P {pid}/0 '{group}' '{label}'")));
            lines.push(json!({"ph": "M", "pid": pid, "tid": 0, "name": "process_sort_index", "args": {"sort_index": kind}}));
        }
        for event in of_group {
            event["pid"] = json!(pid);
            if let Some(ns) = event["ts"].as_i64() {
                event["ts"] = json!(us(ns));
            }
            if let Some(ns) = event["dur"].as_i64() {
                event["dur"] = json!(ns as f64 / 1e3);
            }
        }
    }
    lines.extend(events);
    lines
}

/// A time since 1970 as torch_npu writes it.
fn us(ns: i64) -> String {
    let ns = 1_795_248_907_000_000_000 + ns;
    format!("{}.{:03}", ns / 1_000, ns % 1_000)
}

/// A time of a process's clock, in ns from the begin of the traces of [`npu`].
fn at(process: &Process, ns: i64) -> u64 {
    let anchor: Value = serde_json::from_str(&process.anchor(5_000_000_000)).unwrap();
    let wall_ns = anchor["args"]["realtime_ns"].as_i64().unwrap();
    u64::try_from(5_000_000_000 + 1_795_248_907_000_000_000 - wall_ns + ns).unwrap()
}

/// A process that recorded a step, and sampled launches of 50 µs each on a device. Times are in ns from the begin of the traces of [`npu`].
fn sampled(process: &Process, host: &str, label: &str, launches_ns: &[i64]) -> Fragment {
    let mut fragment = Fragment::foreign(process.pid);
    let of_host = |line: String| line.replace("node-3", host).replace("0b1f7a3e", host);
    fragment.line(&of_host(process.header(0)));
    // 5 s of the process are 1795248907 s since 1970, when the trace begins.
    fragment.line(&process.anchor(5_000_000_000));
    let (step, row) = (process.main_thread(), process.thread(1 << 28));
    let name = format!(r#""name":"worker on {host}""#);
    fragment.line(&step.metadata("process_name", &name));
    let execute = "WorkerWrapperBase.execute_model";
    fragment.line(&step.span(at(process, 0), 900_000, execute, ""));
    fragment.line(&row.metadata("sa_track", &track(label, "Stream 2")));
    for ns in launches_ns {
        let args = r#""stands_for":64,"queue_us":3"#;
        fragment.line(&row.span(at(process, *ns), 50_000, "sampled", args));
    }
    fragment
}

fn track(label: &str, thread: &str) -> String {
    format!(
        r#""process":"Ascend Hardware {label}","label":"{label}","sort_index":0,"thread":"{thread}""#
    )
}

/// A folder whose `run` has these fragments, and the path of that run.
fn run_of(fragments: &[Fragment]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    std::fs::create_dir_all(run.join("fragments")).unwrap();
    for (nth, fragment) in fragments.iter().enumerate() {
        fragment.write(&run.join("fragments"), &nth.to_string());
    }
    (folder, run)
}

/// Two launches of 50 µs each, and three records of MSPTI, whose clock is 15 µs late. Two records overlap, because the clock was renewed. The device was busy
/// for 100 µs, not for 135.
#[test]
fn records_of_mspti_count_no_work_twice() {
    let process = Process::new(4711);
    let mut fragment = sampled(&process, "node-3", "NPU 0", &[20_000, 500_000]);
    let row = process.thread((1 << 28) + 1);
    fragment.line(&row.metadata("sa_track", &track("NPU 0", "Stream 2 (MSPTI)")));
    for ns in [35_000, 40_000, 515_000] {
        let args = r#""correlation":7,"stream":2,"device_method":"mspti""#;
        fragment.line(&row.span(at(&process, ns), 50_000, "MatMulV2", args));
    }
    let (_folder, run) = run_of(&[fragment]);
    for report in both_ways(std::slice::from_ref(&run)) {
        has(only(&report.device), "20000-70000 500000-550000");
        assert_eq!(report.device[0].busy_ns, 100_000);
        assert_eq!(only(&report.stream).name, "Stream 2");
        let of_records = name_time(&report, "MatMulV2");
        let found = (of_records.row_kind, of_records.ncall);
        assert_eq!(found, (RowKind::Region, 3));
    }
    let mut live = LiveReader::new(&run.join("fragments"));
    live.poll();
    let stats = live.stats();
    let busy = stats.device.iter().map(|of| (of.slices, of.busy_ns));
    assert_eq!(busy.collect::<Vec<_>>(), [(2, 100_000)]);
}

/// The kernels of a run whose launches we have sampled, and torch_npu has all for a while.
#[test]
fn issue_48_an_npu_that_two_have_recorded_counts_once() {
    // One before the trace, two of its own kernels, one after it.
    let launches_ns = [20_000, 162_000, 301_000, 500_000];
    let fragment = sampled(&Process::new(4711), "node-3", "NPU 0", &launches_ns);
    let (_folder, run) = run_of(&[fragment]);
    for report in both_ways(&[run, fixture("trace_view.json")]) {
        let npu = only(&report.device);
        // From the begin of the step on, which is the first event.
        has(
            npu,
            "20000-70000 160125-215875 280500-336250 300250-356000 500000-550000",
        );
        // The arrows of the trace lead to calls of its own processes.
        assert_eq!(delays(npu), (5, 3_000, 50_000));
        assert_eq!(report.worker, []);
        // The recorded process is the one that launched.
        let worker = &report.recorded.processes[report.idle[0].worker];
        assert_eq!(worker.pid, 4711);
        let causes = causes(&report);
        assert!(!causes.contains("unknown"), "{causes}");
    }
}

/// The trace has two NPUs of the process, and we have sampled launches of the second. Its host is the process that we have recorded, and needs no device of its own.
#[test]
fn issue_48_a_sampled_npu_is_the_one_with_its_number() {
    let fragment = sampled(&Process::new(4711), "node-3", "NPU 1", &[25_000, 500_000]);
    let (folder, run) = run_of(&[fragment]);
    let first = "X 'Ascend Hardware'/2 10000+290000 MatMulV2 'Task Type'=AI_CORE
        X Python/1 5000+395000 WorkerWrapperBase.execute_model";
    let second = "X 'Ascend Hardware'/2 20000+70000 MatMulV2 'Task Type'=AI_CORE";
    let lines = [npu(CALLS, Some(0), first), npu(CALLS, Some(1), second)].concat();
    let trace = folder.path().join("npus, two.json");
    std::fs::write(&trace, serde_json::to_vec(&lines).unwrap()).unwrap();
    for report in both_ways(&[run, trace]) {
        assert_eq!((report.device.len(), report.worker.len()), (2, 0));
        has(&report.device[0], "10000-300000");
        has(&report.device[1], "20000-90000 500000-550000");
    }
}

/// Workers with one pid on two hosts, one of which was killed. The labels of a merge have more than their pids.
#[test]
fn issue_48_a_merged_run_of_two_hosts_has_the_worker_of_each_device() {
    let fragments = [("node-3", 1), ("node-4", 2)].map(|(host, nonce)| {
        let process = Process {
            nonce,
            ..Process::new(4711)
        };
        let mut fragment = sampled(&process, host, "NPU 0", &[20_000, 500_000]);
        if host == "node-4" {
            let killed = r#""monotonic_ns":5000900000,"open":1,"exit":{"signal":"SIGKILL"}"#;
            fragment.line(&process.main_thread().metadata("sa_end", killed));
        }
        fragment
    });
    let (_folder, run) = run_of(&fragments);
    for report in both_ways(&[run]) {
        assert_eq!((report.device.len(), report.worker.len()), (2, 0));
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
    let fragment = sampled(&Process::new(4711), "node-3", "NPU 0", &[20_000, 2_000_000]);
    let (_folder, run) = run_of(&[fragment]);
    for report in both_ways(&[run]) {
        // The step ends at 900 µs.
        assert_eq!(
            causes(&report),
            "launch_delay 3000, preparing 830000, unknown 1097000"
        );
    }
}

fn call(tid: u64, ts: f64, dur: f64, correlation: u64) -> String {
    format!(
        "X 4711/{tid} {ts}+{dur} cudaLaunchKernel cat=cuda_runtime cbid=211 correlation={correlation}\n"
    )
}

fn kernel(ts: f64, dur: f64, correlation: u64) -> String {
    format!("X 0/7 {ts}+{dur} gemm cat=kernel device=0 stream=7 correlation={correlation}\n")
}

fn arrow(id: u64, from: (u64, f64), to: (u64, f64)) -> String {
    format!(
        "s 4711/{} {} ac2g cat=ac2g id={id}\nf 0/{} {} ac2g cat=ac2g id={id} bp=e\n",
        from.0, from.1, to.0, to.1
    )
}

/// A merge reverses the arrow of such a kernel.
#[test]
fn issue_48_a_merged_kernel_that_begins_before_its_launch_keeps_it() {
    let folder = tempfile::tempdir().unwrap();
    let case = case("issue 48: a kernel that seems to begin before its launch");
    let path = file(folder.path(), "k.json", &case.events);
    case.check(&merged(&[path]));
}

/// Gives the events of the host and of the GPU other pids.
fn on_pids(text: &str, host: &Value, gpu: &Value) -> Vec<Value> {
    let mut events = events(text);
    for event in &mut events {
        let is_of_gpu = event["pid"] == json!(0);
        event["pid"] = if is_of_gpu { gpu } else { host }.clone();
    }
    events
}

/// SGLang merges the traces of ranks by writing the rank before the pids, and leaves ids and correlations as they are.
#[test]
fn issue_48_ranks_in_one_trace_have_launches_of_their_own() {
    let mut lines = Vec::new();
    for (rank, launched) in [("[TP00-DP00]", 0.0), ("[TP01-DP00]", 30.0)] {
        let text = [
            "P 4711/0 python3 CPU\nP 0/0 python3 'GPU 0'\n".to_owned(),
            call(CALLS, launched, 5.0, 1),
            kernel(50.0, 20.0, 1),
            arrow(1, (CALLS, launched), (7, 50.0)),
        ];
        let [host, gpu] = [CALLS, 0].map(|pid| json!(format!("{rank} {pid}")));
        lines.extend(on_pids(&text.concat(), &host, &gpu));
    }
    let folder = tempfile::tempdir().unwrap();
    for report in both_ways(&[file(folder.path(), "ranks.json", &lines)]) {
        // A text in the place of a pid has no order.
        let delays = report.device.iter();
        let delays: BTreeSet<i64> = delays.map(|device| device.launch_delay.max_ns).collect();
        assert_eq!(delays, [20_000, 50_000].into());
        let hosts: BTreeSet<usize> = report.idle.iter().map(|idle| idle.worker).collect();
        assert_eq!(hosts.len(), 2);
        assert!(report.idle.iter().all(|idle| idle.worker != idle.process));
    }
}

/// Traces of two ranks, merged and read again, say what each says by itself.
#[test]
fn issue_48_a_merged_trace_has_the_devices_of_its_inputs() {
    let folder = tempfile::tempdir().unwrap();
    let rank = |name: &str, begin: f64| {
        let text = [
            KINETO.to_owned(),
            call(CALLS, 0.0, 5.0, 1),
            kernel(begin, 20.0, 1),
            format!("X 0/7 {begin}+500 step cat=gpu_user_annotation\n"),
            kernel(700.0, 20.0, 2),
            arrow(1, (CALLS, 0.0), (7, begin)),
        ];
        file(folder.path(), name, &events(&text.concat()))
    };
    // With commas in their names, as labels have between their parts.
    let paths = [rank("r0, a.json", 10.0), rank("r1, a.json", 40.0)];
    let own: Vec<RunReport> = paths.iter().map(report).collect();
    let both = merged(&paths);
    assert_eq!(both.device.len(), 2);
    for (one, alone) in both.device.iter().zip(&own) {
        let figures = |of: &DeviceTime| {
            let delay_ns = of.launch_delay.max_ns;
            (of.slices, of.busy_ns, of.longest_gap_ns, delay_ns)
        };
        assert_eq!(figures(one), figures(only(&alone.device)));
    }
    let causes_of = |report: &RunReport| {
        let causes = report.idle.iter().flat_map(|idle| idle.causes.clone());
        let mut causes: Vec<_> = causes.map(|time| (time.cause, time.ns)).collect();
        causes.sort_unstable();
        causes
    };
    let mut causes: Vec<_> = own.iter().flat_map(causes_of).collect();
    causes.sort_unstable();
    assert_eq!(causes_of(&both), causes);
}

/// The work that was planted on a device, and the delay of each launch.
#[derive(Default)]
struct Planted {
    work: Vec<(i64, i64)>,
    communication: Vec<(i64, i64)>,
    delays: Vec<i64>,
}

impl Planted {
    /// Times of 1 to 30 µs on some streams one after the other, in whole ns, each with its launch.
    fn new(
        numbers: &mut Numbers,
        streams: u64,
        mut add: impl FnMut(&mut Numbers, &Slice),
    ) -> Planted {
        let mut planted = Planted::default();
        for stream in 0..streams {
            let mut at = 50_000 + numbers.below(5_000).cast_signed();
            for _ in 0..60 {
                at += numbers.below(20_000).cast_signed() * numbers.below(3).cast_signed();
                let end = at + 1_000 + numbers.below(29_000).cast_signed();
                let delay = numbers.below(40_000).cast_signed();
                let slice = Slice {
                    id: planted.work.len() as u64 + 1,
                    stream,
                    start_ns: at,
                    end_ns: end,
                    launch_ns: at - delay,
                    is_collective: numbers.below(5) == 0,
                };
                add(numbers, &slice);
                planted.work.push((at, end));
                planted.delays.push(delay);
                if slice.is_collective {
                    planted.communication.push((at, end));
                }
                at = end;
            }
        }
        planted
    }

    fn check(&mut self, report: &RunReport) {
        let found = only(&report.device);
        did(found, &self.work);
        assert_eq!(found.communication_ns, union_ns(&self.communication).0);
        self.delays.sort_unstable();
        let n = self.delays.len();
        assert_eq!(
            delays(found),
            (n as u64, self.delays[0], self.delays[n - 1])
        );
        let mean = self.delays.iter().sum::<i64>() as f64 / n as f64;
        assert!((found.launch_delay.mean_ns - mean).abs() < 1e-3);
        let idle: i64 = report.idle.iter().map(|idle| idle.idle_ns).sum();
        assert_eq!(idle, found.wall_ns - found.busy_ns);
        let causes = causes(report);
        assert!(!causes.contains("unknown"), "{causes}");
    }
}

/// A slice of a device, and when it was launched.
struct Slice {
    id: u64,
    stream: u64,
    start_ns: i64,
    end_ns: i64,
    launch_ns: i64,
    is_collective: bool,
}

#[test]
fn issue_48_random_traces_of_kineto_have_the_union_of_their_kernels() {
    for seed in 0..40 {
        // Times of a report begin with the first event.
        let mut text = "X 0/5 0+9000 main cat=python_function\n".to_owned();
        let us = |ns: i64| ns as f64 / 1e3;
        let mut planted = Planted::new(&mut Numbers::new(seed), 1 + seed % 4, |numbers, slice| {
            let category = match numbers.below(4) {
                0 => "gpu_memcpy",
                1 => "gpu_memset",
                _ => "kernel",
            };
            let name = ["gemm", "ncclDevKernel_AllReduce"][usize::from(slice.is_collective)];
            let (id, row, thread) = (slice.id, slice.stream + 7, CALLS + slice.id % 3);
            let (start, dur) = (us(slice.start_ns), us(slice.end_ns - slice.start_ns));
            text += &format!(
                "X 0/{row} {start}+{dur} {name} cat={category} device=0 stream={row} correlation={id}\n"
            );
            text += &call(thread, us(slice.launch_ns), 3.0, id);
            if numbers.below(2) == 0 {
                text += &arrow(id, (thread, us(slice.launch_ns)), (row, start));
            }
            // An annotation from one kernel on, for whatever it takes.
            if numbers.below(10) == 0 {
                let dur = us(numbers.below(400_000).cast_signed());
                text += &format!("X 0/{row} {start}+{dur} forward cat=gpu_user_annotation\n");
            }
        });
        planted.check(&kineto(&text));
    }
}

#[test]
fn issue_48_random_traces_of_torch_npu_have_the_union_of_their_kernels() {
    for seed in 0..40 {
        let mut text = "X Python/1 0+9000000 main cat=cpu_op
            X 'Overlap Analysis'/3 0+5000000 Free\n"
            .to_owned();
        let has_group = seed % 2 == 0;
        let mut numbers = Numbers::new(1_000 + seed);
        let mut planted = Planted::new(&mut numbers, 1 + seed % 4, |_, slice| {
            let (group, name) = match slice.is_collective {
                true if has_group => ("Communication", "hcom_allReduce__101_0_1"),
                true => ("'Ascend Hardware'", "hcom_allReduce__101_0_1"),
                false => ("'Ascend Hardware'", "MatMulV2"),
            };
            let (id, launch, start) = (slice.id, slice.launch_ns, slice.start_ns);
            let (row, dur) = (slice.stream, slice.end_ns - start);
            let asked = launch - 1_500;
            text += &format!(
                "X {group}/{row} {start}+{dur} {name} connection_id={id} 'Task Type'=AI_CORE
                X CANN/4 {launch}+900 AscendCL@aclnnMatmul connection_id={id}
                s CANN/4 {launch} HostToDevice{id} cat=HostToDevice id='{id}'
                f {group}/{row} {start} HostToDevice{id} cat=HostToDevice id='{id}' bp=e
                s Python/4 {asked} torch_to_npu cat=async_npu id='{id}'
                f {group}/{row} {start} torch_to_npu cat=async_npu id='{id}' bp=e\n"
            );
        });
        planted.check(&of_lines(&npu(CALLS, Some(seed % 8), &text)));
    }
}
