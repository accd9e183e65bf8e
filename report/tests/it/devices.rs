//! Devices in traces of other profilers: how busy they were and who launched their work. Random traces with known
//! contents are compared with a plain union of intervals.

use crate::events::events;
use crate::oracle::Numbers;
use crate::reports::{only, report_from_events, report_from_text};
use crate::traces::case;
use serde_json::{Value, json};
use trace_report::live::LiveReader;
use trace_report::{IdleCause, RunReport};

/// Returns the length of a union of intervals, and its longest gap.
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

/// Process groups of an NPU, each with the number that its pids contain.
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

/// Returns a trace of an NPU as msprof and torch_npu write it. In the text, the process of an event is the name of a
/// group, and times are in ns.
pub(crate) fn npu(pid: u64, number: Option<u64>, text: &str) -> Vec<Value> {
    let label = number.map_or("NPU".to_owned(), |number| format!("NPU {number}"));
    let mut events = events(text);
    let mut lines = Vec::new();
    for (group, kind) in GROUPS {
        let is_host = kind < 14;
        let number = if is_host { None } else { number };
        let pid = pid << 10 | kind << 5 | number.unwrap_or(31);
        let mut members: Vec<&mut Value> = events.iter_mut().collect();
        members.retain(|event| event["pid"] == group);
        if is_host || !members.is_empty() {
            let label = if is_host { "CPU" } else { &label };
            lines.extend(self::events(&format!("P {pid}/0 '{group}' '{label}'")));
            lines.push(json!({"ph": "M", "pid": pid, "tid": 0, "name": "process_sort_index", "args": {"sort_index": kind}}));
        }
        for event in members {
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

/// Formats a time since 1970 as torch_npu does.
fn us(ns: i64) -> String {
    let ns = 1_795_248_907_000_000_000 + ns;
    format!("{}.{:03}", ns / 1_000, ns % 1_000)
}

/// The live figures must not count the work twice either.
#[test]
fn mspti_records_do_not_count_work_twice_in_a_live_run() {
    let folder = tempfile::tempdir().unwrap();
    case("records of MSPTI").write(folder.path());
    let mut live = LiveReader::new(&folder.path().join("run/fragments"));
    live.poll();
    let stats = live.stats();
    let busy = stats
        .device
        .iter()
        .map(|device| (device.slices, device.busy_ns));
    assert_eq!(busy.collect::<Vec<_>>(), [(2, 100_000)]);
}

/// The known work of a device, and the delay of each launch.
#[derive(Default)]
struct Planted {
    work: Vec<(i64, i64)>,
    communication: Vec<(i64, i64)>,
    delays: Vec<i64>,
}

impl Planted {
    /// Creates slices of 1 to 30 µs that follow each other on each stream, in whole ns, each with its launch.
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
        let ends = self.work.iter().map(|(_, end)| *end);
        let starts = self.work.iter().map(|(start, _)| *start);
        let wall_ns = ends.max().unwrap() - starts.min().unwrap();
        let (busy_ns, longest_gap_ns) = union_ns(&self.work);
        let times = [found.busy_ns, found.longest_gap_ns, found.wall_ns];
        assert_eq!(times, [busy_ns, longest_gap_ns, wall_ns]);
        assert_eq!(found.slices, self.work.len() as u64);
        assert_eq!(found.communication_ns, union_ns(&self.communication).0);
        self.delays.sort_unstable();
        let n = self.delays.len();
        let delay = found.launch_delay;
        let ends = (delay.n, delay.min_ns, delay.max_ns);
        assert_eq!(ends, (n as u64, self.delays[0], self.delays[n - 1]));
        let mean = self.delays.iter().sum::<i64>() as f64 / n as f64;
        assert!((delay.mean_ns - mean).abs() < 1e-3);
        let idle: i64 = report.idle.iter().map(|idle| idle.idle_ns).sum();
        assert_eq!(idle, found.wall_ns - found.busy_ns);
        let mut causes = report.idle.iter().flat_map(|idle| &idle.causes);
        assert!(causes.all(|time| time.cause != IdleCause::Unknown));
    }
}

/// A slice of a device, and its launch time.
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
        // The clock of a report starts at the first event.
        let mut text = "P 4711/0 python3 CPU
            P 0/0 python3 'GPU 0'
            P 1/0 python3 'GPU 1'
            X 0/5 0+9000 main cat=python_function\n"
            .to_owned();
        let us = |ns: i64| ns as f64 / 1e3;
        let mut planted = Planted::new(&mut Numbers::new(seed), 1 + seed % 4, |numbers, slice| {
            let category = match numbers.below(4) {
                0 => "gpu_memcpy",
                1 => "gpu_memset",
                _ => "kernel",
            };
            let name = ["gemm", "ncclDevKernel_AllReduce"][usize::from(slice.is_collective)];
            let (id, track, thread) = (slice.id, slice.stream + 7, 4_711 + slice.id % 3);
            let (start, dur) = (us(slice.start_ns), us(slice.end_ns - slice.start_ns));
            text += &format!(
                "X 0/{track} {start}+{dur} {name} cat={category} device=0 stream={track} correlation={id}\n"
            );
            let launch = us(slice.launch_ns);
            text += &format!(
                "X 4711/{thread} {launch}+3 cudaLaunchKernel cat=cuda_runtime cbid=211 correlation={id}\n"
            );
            if numbers.below(2) == 0 {
                text += &format!(
                    "s 4711/{thread} {launch} ac2g cat=ac2g id={id}
                    f 0/{track} {start} ac2g cat=ac2g id={id} bp=e\n"
                );
            }
            // An annotation that starts with a kernel and has a random length.
            if numbers.below(10) == 0 {
                let dur = us(numbers.below(400_000).cast_signed());
                text += &format!("X 0/{track} {start}+{dur} forward cat=gpu_user_annotation\n");
            }
        });
        planted.check(&report_from_text(&text));
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
            let (track, dur) = (slice.stream, slice.end_ns - start);
            let requested = launch - 1_500;
            text += &format!(
                "X {group}/{track} {start}+{dur} {name} connection_id={id} 'Task Type'=AI_CORE
                X CANN/4 {launch}+900 AscendCL@aclnnMatmul connection_id={id}
                s CANN/4 {launch} HostToDevice{id} cat=HostToDevice id='{id}'
                f {group}/{track} {start} HostToDevice{id} cat=HostToDevice id='{id}' bp=e
                s Python/4 {requested} torch_to_npu cat=async_npu id='{id}'
                f {group}/{track} {start} torch_to_npu cat=async_npu id='{id}' bp=e\n"
            );
        });
        planted.check(&report_from_events(&npu(4_711, Some(seed % 8), &text)));
    }
}
