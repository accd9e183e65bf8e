//! Generates a trace as a merge writes it: an engine, workers with one device each, and the requests that they serve.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

pub(crate) const WORKERS: usize = 8;
const FRONTEND: usize = 1;
const ENGINE: usize = 2;
const FIRST_WORKER: usize = 10;
const FIRST_DEVICE: usize = 100;
/// Number of requests at a time, and number of tokens of each.
const BATCH: u64 = 16;
const TOKENS: u64 = 24;
/// Number of kernels per step, and duration of a kernel in ns.
const KERNELS: u64 = 20;
const KERNEL_NS: u64 = 90_000;
const NAMES: [&str; 5] = [
    "qkv_proj",
    "paged_attention",
    "o_proj",
    "mlp_up",
    "mlp_down",
];

/// Returns the trace with a size in MB. Generates it if it does not exist.
pub(crate) fn trace(megabytes: u64) -> Result<PathBuf, String> {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("report-{megabytes}.json"));
    let generate = || {
        let part = path.with_extension("part");
        write(&part, megabytes * 1_000_000)?;
        std::fs::rename(&part, &path) // last, so that an interrupted generation is repeated
    };
    match path.exists() {
        true => Ok(path),
        false => generate()
            .map_err(|error| format!("generating {}: {error}", path.display()))
            .map(|()| path),
    }
}

struct Trace {
    file: BufWriter<File>,
    bytes: u64,
    launches: u64,
}

fn write(path: &Path, bytes: u64) -> io::Result<()> {
    let mut trace = Trace {
        file: BufWriter::with_capacity(1 << 20, File::create(path)?),
        bytes: 0,
        launches: 0,
    };
    trace.write(format_args!("{{\"traceEvents\":[\n"))?;
    trace.name(FRONTEND, "APIServer", "")?;
    trace.name(ENGINE, "EngineCore", "")?;
    for worker in 0..WORKERS {
        let (pid, name) = (FIRST_WORKER + worker, format!("Worker_TP{worker}"));
        trace.name(pid, &name, &format!("pid {pid}"))?;
        let (device, name) = (FIRST_DEVICE + worker, format!("NPU {worker}"));
        trace.name(device, &name, &format!("{name}, pid {pid}"))?;
    }
    let (mut now_ns, mut step) = (0, 0);
    while trace.bytes < bytes {
        now_ns = trace.batch(now_ns, &mut step)?;
    }
    let end_us = now_ns / 1_000;
    trace.write(format_args!(
        "{{\"ph\":\"i\",\"pid\":{FRONTEND},\"tid\":1,\"ts\":{end_us},\"s\":\"t\",\"name\":\"end\"}}\n]}}\n"
    ))?;
    trace.file.flush()
}

impl Trace {
    fn write(&mut self, text: fmt::Arguments<'_>) -> io::Result<()> {
        let text = text.to_string();
        self.bytes += text.len() as u64;
        self.file.write_all(text.as_bytes())
    }

    fn name(&mut self, pid: usize, name: &str, labels: &str) -> io::Result<()> {
        for (what, key, value) in [("name", "name", name), ("labels", "labels", labels)] {
            let args = format_args!(
                "{{\"ph\":\"M\",\"pid\":{pid},\"tid\":1,\"name\":\"process_{what}\",\"args\":{{\"{key}\":\"{value}\"}}}},\n"
            );
            self.write(args)?;
        }
        Ok(())
    }

    /// Writes a span on a thread, with its name and category.
    fn span(
        &mut self,
        (pid, tid): (usize, u64),
        (name, category): (&str, &str),
        (from_ns, dur_ns): (u64, u64),
        args: fmt::Arguments<'_>,
    ) -> io::Result<()> {
        let (us, dur_us) = (from_ns as f64 / 1e3, dur_ns as f64 / 1e3);
        let args = format_args!(
            "{{\"ph\":\"X\",\"pid\":{pid},\"tid\":{tid},\"ts\":{us:.3},\"dur\":{dur_us:.3},\"name\":\"{name}\",\"cat\":\"{category}\",\"args\":{{{args}}}}},\n"
        );
        self.write(args)
    }

    fn instant(&mut self, name: &str, ns: u64, args: fmt::Arguments<'_>) -> io::Result<()> {
        let us = ns as f64 / 1e3;
        let args = format_args!(
            "{{\"ph\":\"i\",\"pid\":{ENGINE},\"tid\":1,\"ts\":{us:.3},\"s\":\"t\",\"name\":\"{name}\",\"cat\":\"request\",\"args\":{{{args}}}}},\n"
        );
        self.write(args)
    }

    /// Writes a batch of requests until all of them are served. Returns the end of the last one.
    fn batch(&mut self, from_ns: u64, step: &mut u64) -> io::Result<u64> {
        let ids: Vec<String> = (0..BATCH)
            .map(|number| format!("cmpl-{from_ns:x}-{number}"))
            .collect();
        let list = format!("\"request_ids\":[\"{}\"]", ids.join("\",\""));
        let mut now_ns = from_ns + 200_000;
        for id in &ids {
            let args = format_args!("\"request_id\":\"{id}\",\"prompt_tokens\":40");
            self.instant("request.queued", now_ns, args)?;
            self.instant("request.scheduled", now_ns + 90_000, args)?;
        }
        for _ in 0..TOKENS {
            *step += 1;
            now_ns = self.step(now_ns, *step, &list)?;
            for id in &ids {
                self.instant(
                    "request.token",
                    now_ns,
                    format_args!("\"request_id\":\"{id}\""),
                )?;
            }
        }
        for (thread, id) in (10..).zip(&ids) {
            let args = format_args!(
                "\"request_id\":\"{id}\",\"output_tokens\":{TOKENS},\"reason\":\"length\""
            );
            let place = (FRONTEND, thread); // each request is on its own track, because they overlap
            self.span(
                place,
                ("http.request", "request"),
                (from_ns, now_ns - from_ns),
                args,
            )?;
        }
        Ok(now_ns + 300_000)
    }

    /// Writes a step of all workers, and returns its end.
    fn step(&mut self, from_ns: u64, step: u64, ids: &str) -> io::Result<u64> {
        let (engine, us) = ((ENGINE, 1), from_ns as f64 / 1e3);
        let args = format_args!(
            "{{\"ph\":\"C\",\"pid\":{ENGINE},\"tid\":1,\"ts\":{us:.3},\"name\":\"requests\",\"args\":{{\"running\":{BATCH},\"waiting\":0}}}},\n"
        );
        self.write(args)?;
        let worker_ns = from_ns + 200_000;
        let gap_ns = |kernel: u64| (kernel * 7 + step) % 11 * 2_000;
        let busy_ns: u64 = (0..KERNELS).map(|kernel| KERNEL_NS + gap_ns(kernel)).sum();
        let dur_ns = 80_000 + busy_ns + 40_000;
        let over_ns = worker_ns + dur_ns + 30_000;
        let called = (from_ns + 150_000, dur_ns + 80_000);
        self.span(
            engine,
            ("scheduler.schedule", "scheduler"),
            (from_ns, 150_000),
            format_args!("{ids}"),
        )?;
        self.span(
            engine,
            ("executor.execute_model", "executor"),
            called,
            format_args!("\"step\":{step}"),
        )?;
        for worker in 0..WORKERS {
            let (host, device) = ((FIRST_WORKER + worker, 1), (FIRST_DEVICE + worker, 1));
            let args = format_args!("\"step\":{step},{ids}");
            self.span(
                host,
                ("WorkerWrapperBase.execute_model", "worker"),
                (worker_ns, dur_ns),
                args,
            )?;
            let mut now_ns = worker_ns + 80_000;
            for (kernel, name) in (0..KERNELS).zip(NAMES.iter().cycle()) {
                self.launches += 1;
                now_ns += gap_ns(kernel);
                let (name, launch) = ((*name, "kernel"), self.launches);
                self.span(
                    host,
                    name,
                    (now_ns - 6_000, 4_000),
                    format_args!("\"launch\":{launch},\"grid\":6,\"stream\":0"),
                )?;
                let args = format_args!(
                    "\"launch\":{launch},\"host_wall_us\":4.0,\"device_wall_us\":90.0,\"queue_us\":6.0"
                );
                self.span(device, name, (now_ns, KERNEL_NS), args)?;
                now_ns += KERNEL_NS;
            }
        }
        let args = format_args!("\"step\":{step},\"outputs\":{BATCH}");
        self.span(
            engine,
            ("scheduler.update_from_output", "scheduler"),
            (over_ns, 120_000),
            args,
        )?;
        Ok(over_ns + 150_000)
    }
}
