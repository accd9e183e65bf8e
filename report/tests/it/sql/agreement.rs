//! Comparisons of the rows of statements with a report, and of engines with each other.

use super::{Rows, WHOLE};
use serde_json::{Value, json, to_value};
use std::collections::BTreeMap;
use trace_report::live::LiveStats;
use trace_report::{LongGap, Quantiles, RunReport};

/// Formats a row so that rows of two engines are comparable. Engines add up floating-point numbers in different orders.
fn comparable(row: &Value) -> String {
    let row = row.as_object().unwrap().iter();
    let plain = row.map(|(name, value)| match value.as_f64() {
        Some(number) => format!("{name}: {number:.9e}"),
        None => format!("{name}: {value}"),
    });
    plain.collect::<Vec<_>>().join(", ")
}

/// Checks that two engines have the same rows.
pub(super) fn agree(one: &Rows, other: &Rows) {
    for (name, rows) in one {
        let comparable = |rows: &[Value]| {
            let mut rows: Vec<String> = rows.iter().map(comparable).collect();
            if WHOLE.iter().any(|(whole, _)| whole == name) {
                rows.sort();
            }
            rows
        };
        assert_eq!(comparable(rows), comparable(&other[name]), "{name}");
    }
}

/// Returns true if two numbers differ by no more than the rounding of their sums.
fn near(found: &Value, expected: f64) -> bool {
    let found = found.as_f64().unwrap_or(f64::NAN);
    (found - expected).abs() <= 1e-9 * expected.abs().max(1.0)
}

/// Converts a time in µs to whole ns.
#[expect(clippy::cast_possible_truncation, reason = "times of a trace")]
fn ns(us: &Value) -> i64 {
    (us.as_f64().unwrap_or(f64::NAN) * 1e3).round() as i64
}

fn row(rows: &[Value], is_wanted: impl Fn(&Value) -> bool) -> &Value {
    let found = rows.iter().find(|row| is_wanted(row));
    found.unwrap_or_else(|| panic!("not in {rows:?}"))
}

fn quantiles_agree(row: &Value, quantiles: &Quantiles) {
    assert_eq!(ns(&row["max_us"]), quantiles.max_ns, "{quantiles:?}: {row}");
    for (name, expected) in [
        ("p50_us", quantiles.p50_ns),
        ("p90_us", quantiles.p90_ns),
        ("p99_us", quantiles.p99_ns),
    ] {
        assert!(
            near(&row[name], expected / 1e3),
            "{name} {quantiles:?}: {row}"
        );
    }
}

/// Checks every column of every request, the summary figures, and the parts of the time.
fn requests_agree(rows: &Rows, report: &RunReport) {
    let plain = |row: &Value, process: Option<String>| {
        let mut row = row.as_object().unwrap().clone();
        row.retain(|name, _| !matches!(name.as_str(), "upid" | "host"));
        row.insert("process".to_owned(), json!(process));
        let cells = row.into_iter().map(|(name, value)| match value.as_f64() {
            Some(number) => format!("{name} {number:?}"),
            None => format!("{name} {value}"),
        });
        cells.collect::<Vec<_>>()
    };
    let found = rows["every request"].iter();
    let found = found.map(|row| plain(row, row["process"].as_str().map(str::to_owned)));
    let expected = report.request.iter().map(|request| {
        let process = request.process;
        let process = process.map(|process| report.recorded.process_name(process));
        plain(&to_value(request).unwrap(), process)
    });
    let (mut found, mut expected) = (found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    let summary = &report.requests;
    let metrics = [
        ("queue", summary.queue),
        ("prefill", summary.prefill),
        ("decode", summary.decode),
        ("engine_ttft", summary.engine_ttft),
        ("ttft", summary.ttft),
        ("tpot", summary.tpot),
        ("e2e", summary.e2e),
        ("application_ttft", summary.application_ttft),
        ("application_e2e", summary.application_e2e),
    ];
    let present = metrics.iter().filter(|(_, quantiles)| quantiles.n > 0);
    assert_eq!(rows["request_summary"].len(), present.clone().count());
    for (name, quantiles) in present {
        let row = row(&rows["request_summary"], |row| row["metric"] == *name);
        let least = (row["n"].as_u64(), ns(&row["min_us"]));
        assert_eq!(least, (Some(quantiles.n), quantiles.min_ns), "{row}");
        assert!(
            near(&row["mean_us"], quantiles.mean_ns / 1e3),
            "{row} {quantiles:?}"
        );
        quantiles_agree(row, quantiles);
    }
    let parts = &rows["request_parts"][0];
    let mut expected: BTreeMap<String, f64> = BTreeMap::new();
    for part in &report.request_parts.parts {
        let last = part.name.rsplit(" + ").next().unwrap().to_lowercase();
        *expected.entry(format!("{last}_us")).or_default() += part.mean_ns / 1e3;
    }
    assert_eq!(parts["n"], json!(report.request_parts.n));
    for (name, mean_us) in expected {
        assert!(near(&parts[&name], mean_us), "{name} {mean_us}: {parts}");
    }
    vllm_metrics_agree(rows, report);
}

/// Checks the sums and counts of vLLM's histograms. The engine's histograms count only requests whose response came
/// back.
fn vllm_metrics_agree(rows: &Rows, report: &RunReport) {
    let metrics = "time_to_first_token read_ns first_token_ns
        e2e_request_latency read_ns answered_ns
        request_queue_time queued_ns scheduled_ns
        request_prefill_time scheduled_ns engine_first_token_ns
        request_decode_time engine_first_token_ns last_token_ns
        request_inference_time scheduled_ns last_token_ns";
    let requests = to_value(&report.request).unwrap();
    let found = &rows["vllm_metrics"];
    assert_eq!(found.len(), metrics.lines().count());
    for line in metrics.lines() {
        let [metric, from, to] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let is_counted = |request: &&Value| from == "read_ns" || !request["answered_ns"].is_null();
        let counted = requests.as_array().unwrap().iter().filter(is_counted);
        let times =
            counted.filter_map(|request| Some(request[to].as_i64()? - request[from].as_i64()?));
        let times: Vec<i64> = times.collect();
        let (n, sum_ns) = (times.len(), times.iter().sum::<i64>());
        let row = row(found, |row| row["metric"] == metric);
        assert_eq!(row["n"], json!(n), "{row}");
        let is_null = n == 0 && row["sum_s"].is_null();
        let is_same = is_null || n > 0 && near(&row["sum_s"], sum_ns as f64 / 1e9);
        assert!(is_same, "{row}: expected {sum_ns} ns");
    }
}

/// Checks the columns of a row except for `others`. Each must equal the report's member of the same name, or for a
/// column in µs, the member in ns.
fn has_members(row: &Value, members: &Value, others: &[&str], count: usize) {
    let columns = row.as_object().unwrap().iter();
    let checked = columns.filter(|(column, _)| !others.contains(&column.as_str()));
    assert_eq!(checked.clone().count(), count, "columns of {row}");
    for (column, cell) in checked {
        let in_ns = column.strip_suffix("_us");
        let in_ns = in_ns.and_then(|name| members[format!("{name}_ns")].as_f64());
        let expected = in_ns.map_or(members[column].clone(), |ns| json!(ns / 1e3));
        assert_eq!(*cell, expected, "{column} of {row}: {members}");
    }
}

/// Checks the calls and times of every name.
fn names_agree(rows: &Rows, report: &RunReport) {
    let others = ["host", "max_concurrency"];
    for (table, columns) in [("names", 12), ("every name", 20)] {
        assert_eq!(rows[table].len(), report.names.len());
        for name in &report.names {
            let mut expected = to_value(name).unwrap();
            expected["group_name"] = expected["group"].clone();
            let mut duration = expected["duration"].take();
            if name.duration.n > 0 {
                let fields = expected.as_object_mut().unwrap();
                fields.append(duration.as_object_mut().unwrap());
            } else {
                expected["tavg_ns"] = Value::Null;
            }
            let is_name = |row: &Value| {
                let keys = ["name", "row_kind", "category"];
                keys.iter().all(|key| row[key] == expected[key])
            };
            has_members(row(&rows[table], is_name), &expected, &others, columns);
        }
    }
}

/// Checks how busy devices were, and which processes feed them.
fn devices_agree(rows: &Rows, report: &RunReport) {
    let devices = report.device.iter().map(|time| (time, 0));
    let devices = devices.chain(report.worker.iter().map(|time| (time, 1)));
    for (table, columns) in [("devices", 15), ("every device", 22)] {
        assert_eq!(rows[table].len(), devices.clone().count());
        for (device, is_worker) in devices.clone() {
            let name = |process: usize| json!(report.recorded.process_name(process));
            let idle = report
                .idle
                .iter()
                .find(|idle| idle.process == device.process);
            let mut expected = to_value(device).unwrap();
            expected["process"] = name(device.process);
            expected["is_worker"] = json!(is_worker);
            expected["worker"] = json!(idle.map(|idle| name(idle.worker)));
            expected["engine"] = json!(idle.and_then(|idle| idle.engine).map(name));
            expected["idle_ns"] = json!(device.wall_ns - device.busy_ns);
            expected["launches"] = json!(device.launch_delay.n);
            if device.launch_delay.n > 0 {
                for figure in ["mean", "p50", "p90", "p99", "max"] {
                    let ns = expected["launch_delay"][format!("{figure}_ns")].clone();
                    expected[format!("launch_delay_{figure}_ns")] = ns;
                }
            }
            let is_device = |row: &Value| {
                row["process"] == expected["process"] && row["is_worker"] == is_worker
            };
            let others = ["busy_percent", "engine_upid", "host", "upid", "worker_upid"];
            has_members(row(&rows[table], is_device), &expected, &others, columns);
        }
    }
    idle_agrees(rows, report);
}

/// Checks the causes of idle time, each interval, and the longest gaps.
fn idle_agrees(rows: &Rows, report: &RunReport) {
    let mut found: BTreeMap<(String, String), i64> = BTreeMap::new();
    let (mut expected, mut intervals) = (found.clone(), found.clone());
    let key = |row: &Value| ["process", "cause"].map(|key| row[key].as_str().unwrap().to_owned());
    for row in &rows["idle"] {
        *found.entry(key(row).into()).or_default() += ns(&row["idle_us"]);
    }
    for row in &rows["every interval"] {
        *intervals.entry(key(row).into()).or_default() += ns(&row["dur_us"]);
    }
    for idle in &report.idle {
        for time in &idle.causes {
            let name = report.recorded.process_name(idle.process);
            let cause = time.cause.name().to_owned();
            *expected.entry((name, cause)).or_default() += time.ns;
        }
    }
    assert_eq!((&found, &intervals), (&expected, &expected));
    let name = |gap: &LongGap| report.recorded.process_name(gap.process);
    let gaps = rows["gaps"].iter().map(|row| {
        let times = [ns(&row["gap_us"]), ns(&row["cause_us"])];
        (key(row), row["gap_start_ns"].as_i64().unwrap(), times)
    });
    let longest = report.long_gaps.iter().map(|gap| {
        let key = [name(gap), gap.cause.name().to_owned()];
        (key, gap.start_ns, [gap.dur_ns, gap.cause_ns])
    });
    assert_eq!(gaps.collect::<Vec<_>>(), longest.collect::<Vec<_>>());
    // The intervals of a gap fill it without interruption.
    let is_same_gap = |one: &Value, next: &Value| {
        let keys = ["upid", "gap_start_ns"];
        keys.iter().all(|key| one[*key] == next[*key])
    };
    for gap in rows["every interval"].chunk_by(is_same_gap) {
        let mut end_ns = gap[0]["gap_start_ns"].as_i64().unwrap();
        for row in gap {
            assert_eq!(row["start_ns"], end_ns, "{row}");
            end_ns += ns(&row["dur_us"]);
        }
    }
    for gap in &report.long_gaps {
        let intervals = rows["every interval"].iter().filter(|row| {
            row["process"] == name(gap).as_str() && row["gap_start_ns"] == gap.start_ns
        });
        let sum_ns: i64 = intervals.map(|row| ns(&row["dur_us"])).sum();
        assert_eq!(sum_ns, gap.dur_ns, "{gap:?}");
    }
}

/// Checks what engines put into their steps, and the longest steps of workers.
fn steps_agree(rows: &Rows, report: &RunReport) {
    let engines = report.batching.iter().filter(|batching| batching.steps > 0);
    assert_eq!(rows["batching"].len(), engines.clone().count());
    for batching in engines {
        let name = report.recorded.process_name(batching.process);
        let found = row(&rows["batching"], |row| row["process"] == name.as_str());
        let others = ["decode_step_us", "mixed_step_us", "process"];
        has_members(found, &to_value(batching).unwrap(), &others, 5);
        for (key, expected) in [
            ("decode_step_us", batching.decode_step_ns),
            ("mixed_step_us", batching.mixed_step_ns),
        ] {
            let is_none = found[key].is_null() && expected == 0.0;
            let is_same = is_none || near(&found[key], expected / 1e3);
            assert!(is_same, "{found} {batching:?}");
        }
    }
    let steps = rows["steps"].iter().map(|row| {
        let texts = ["process", "name"].map(|key| row[key].as_str().unwrap().to_owned());
        let requests = row["requests"].as_u64().unwrap_or(0);
        let start_ns = row["start_ns"].as_i64().unwrap();
        (texts, start_ns, ns(&row["dur_us"]), requests)
    });
    let expected = report.slow_steps.iter().map(|step| {
        let process = report.recorded.process_name(step.process);
        let texts = [process, step.name.clone()];
        (texts, step.start_ns, step.dur_ns, step.requests as u64)
    });
    assert_eq!(steps.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}

/// Checks the events of each process, and the losses.
fn recorded_agrees(rows: &Rows, report: &RunReport) {
    let processes = &report.recorded.processes;
    let found = rows["recorded"].iter().map(|row| row["events"].as_u64());
    let expected = processes.iter().map(|process| Some(process.events));
    let (mut found, mut expected) = (found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
    let mut lost: BTreeMap<(i64, &str), u64> = BTreeMap::new();
    for loss in &report.recorded.losses {
        *lost.entry((loss.pid, &loss.cause)).or_default() += loss.events;
    }
    let found = rows["losses"].iter().map(|row| {
        let key = (row["pid"].as_i64().unwrap(), row["cause"].as_str().unwrap());
        (key, row["events"].as_u64().unwrap())
    });
    assert_eq!(found.collect::<BTreeMap<_, _>>(), lost);
}

/// Checks all figures that a report and the statements have in common.
pub(super) fn all_agree(rows: &Rows, report: &RunReport) {
    requests_agree(rows, report);
    names_agree(rows, report);
    devices_agree(rows, report);
    steps_agree(rows, report);
    recorded_agrees(rows, report);
}

/// Checks the request figures of a live reader.
pub(super) fn live_agrees(live: &LiveStats, report: &RunReport) {
    assert_eq!(live.mixed, report.requests.mixed);
    let [served, reported] = [to_value(&live.requests), to_value(&report.requests)];
    let [served, reported] = [served, reported].map(Result::unwrap);
    for key in ["ok", "aborted", "failed"] {
        assert_eq!(served[key], reported[key], "{key}");
    }
    for key in "ttft engine_ttft tpot itl e2e queue prefill decode".split(' ') {
        let (live, expected) = (&served[key], &reported[key]);
        let n = expected["n"].as_f64().unwrap();
        let sum_ns = n * expected["mean_ns"].as_f64().unwrap();
        let off = (live["sum_ns"].as_f64().unwrap() - sum_ns).abs();
        let is_same = live["n"] == expected["n"] && off <= 1e-3 * n;
        assert!(is_same, "{key}: {live} {expected}");
    }
}
