//! A trace as a merge leaves it: an engine, workers with a device each, and the requests that they serve.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

pub(crate) const WORKERS: usize = 8;
const FRONTEND: usize = 1;
const ENGINE: usize = 2;
const FIRST_WORKER: usize = 10;
const FIRST_DEVICE: usize = 100;
/// Requests at a time, and tokens of each.
const BATCH: u64 = 16;
const TOKENS: u64 = 24;
/// Kernels of a step, and how long one takes, in ns.
const KERNELS: u64 = 20;
const KERNEL_NS: u64 = 90_000;
const NAMES: [&str; 5] = [
    "qkv_proj",
    "paged_attention",
    "o_proj",
    "mlp_up",
    "mlp_down",
];

/// The trace of so many MB; made if it is not there.
pub(crate) fn trace(megabytes: u64) -> io::Result<PathBuf> {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("report-{megabytes}.json"));
    if !path.exists() {
        let part = path.with_extension("part");
        write(&part, megabytes * 1_000_000)?;
        std::fs::rename(&part, &path)?; // last, so that an interrupted generation starts anew
    }
    Ok(path)
}

/// What is written so far.
struct Trace {
    file: BufWriter<File>,
    bytes: u64,
    launches: u64,
}

fn write(path: &Path, bytes: u64) -> io::Result<()> {
    let file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let mut trace = Trace {
        file,
        bytes: 0,
        launches: 0,
    };
    trace.put("{\"traceEvents\":[\n")?;
    trace.names()?;
    let (mut now_ns, mut step) = (0, 0);
    while trace.bytes < bytes {
        now_ns = trace.batch(now_ns, &mut step)?;
    }
    let end = format!(
        "{{\"ph\":\"i\",\"pid\":{FRONTEND},\"tid\":1,\"ts\":{},\"s\":\"t\",\"name\":\"end\"}}\n]}}\n",
        now_ns / 1_000
    );
    trace.put(&end)?;
    trace.file.flush()
}

impl Trace {
    fn put(&mut self, text: &str) -> io::Result<()> {
        self.bytes += text.len() as u64;
        self.file.write_all(text.as_bytes())
    }

    fn names(&mut self) -> io::Result<()> {
        let mut named = vec![
            (FRONTEND, "APIServer".to_owned(), String::new()),
            (ENGINE, "EngineCore".to_owned(), String::new()),
        ];
        for worker in 0..WORKERS {
            let pid = FIRST_WORKER + worker;
            named.push((pid, format!("Worker_TP{worker}"), format!("pid {pid}")));
            named.push((
                FIRST_DEVICE + worker,
                format!("NPU {worker}"),
                format!("NPU {worker}, pid {pid}"),
            ));
        }
        for (pid, name, labels) in named {
            self.put(&format!("{{\"ph\":\"M\",\"pid\":{pid},\"tid\":1,\"name\":\"process_name\",\"args\":{{\"name\":\"{name}\"}}}},\n"))?;
            self.put(&format!("{{\"ph\":\"M\",\"pid\":{pid},\"tid\":1,\"name\":\"process_labels\",\"args\":{{\"labels\":\"{labels}\"}}}},\n"))?;
        }
        Ok(())
    }

    fn span(
        &mut self,
        pid: usize,
        name: &str,
        category: &str,
        (from_ns, dur_ns): (u64, u64),
        args: &str,
    ) -> io::Result<()> {
        let (us, dur_us) = (from_ns as f64 / 1e3, dur_ns as f64 / 1e3);
        self.put(&format!("{{\"ph\":\"X\",\"pid\":{pid},\"tid\":1,\"ts\":{us:.3},\"dur\":{dur_us:.3},\"name\":\"{name}\",\"cat\":\"{category}\",\"args\":{{{args}}}}},\n"))
    }

    /// A batch of requests, served to its end; when that is.
    fn batch(&mut self, from_ns: u64, step: &mut u64) -> io::Result<u64> {
        let id = |number: u64| format!("cmpl-{from_ns:x}-{number}");
        let ids: Vec<String> = (0..BATCH)
            .map(|number| format!("\"{}\"", id(number)))
            .collect();
        let ids = format!("\"request_ids\":[{}]", ids.join(","));
        let mut now_ns = from_ns + 200_000;
        for number in 0..BATCH {
            let args = format!("\"request_id\":\"{}\",\"prompt_tokens\":40", id(number));
            self.instant("request.queued", now_ns, &args)?;
            self.instant("request.scheduled", now_ns + 90_000, &args)?;
        }
        for _ in 0..TOKENS {
            *step += 1;
            now_ns = self.step(now_ns, *step, &ids)?;
            for number in 0..BATCH {
                self.instant(
                    "request.token",
                    now_ns,
                    &format!("\"request_id\":\"{}\"", id(number)),
                )?;
            }
        }
        for number in 0..BATCH {
            let args = format!(
                "\"request_id\":\"{}\",\"output_tokens\":{TOKENS},\"reason\":\"length\"",
                id(number)
            );
            // Requests of one time lie on rows of their own.
            let (us, dur_us) = (from_ns as f64 / 1e3, (now_ns - from_ns) as f64 / 1e3);
            self.put(&format!("{{\"ph\":\"X\",\"pid\":{FRONTEND},\"tid\":{},\"ts\":{us:.3},\"dur\":{dur_us:.3},\"name\":\"http.request\",\"cat\":\"request\",\"args\":{{{args}}}}},\n", 10 + number))?;
        }
        Ok(now_ns + 300_000)
    }

    fn instant(&mut self, name: &str, ns: u64, args: &str) -> io::Result<()> {
        let us = ns as f64 / 1e3;
        self.put(&format!("{{\"ph\":\"i\",\"pid\":{ENGINE},\"tid\":1,\"ts\":{us:.3},\"s\":\"t\",\"name\":\"{name}\",\"cat\":\"request\",\"args\":{{{args}}}}},\n"))
    }

    /// A step of all workers; when it is over.
    fn step(&mut self, from_ns: u64, step: u64, ids: &str) -> io::Result<u64> {
        self.put(&format!("{{\"ph\":\"C\",\"pid\":{ENGINE},\"tid\":1,\"ts\":{:.3},\"name\":\"requests\",\"args\":{{\"running\":{BATCH},\"waiting\":0}}}},\n", from_ns as f64 / 1e3))?;
        self.span(
            ENGINE,
            "scheduler.schedule",
            "scheduler",
            (from_ns, 150_000),
            ids,
        )?;
        let worker_ns = from_ns + 200_000;
        let gap_ns = |kernel: u64| (kernel * 7 + step) % 11 * 2_000;
        let busy_ns: u64 = (0..KERNELS).map(|kernel| KERNEL_NS + gap_ns(kernel)).sum();
        let dur_ns = 80_000 + busy_ns + 40_000;
        self.span(
            ENGINE,
            "executor.execute_model",
            "executor",
            (from_ns + 150_000, dur_ns + 80_000),
            &format!("\"step\":{step}"),
        )?;
        for worker in 0..WORKERS {
            let args = format!("\"step\":{step},{ids}");
            self.span(
                FIRST_WORKER + worker,
                "WorkerWrapperBase.execute_model",
                "worker",
                (worker_ns, dur_ns),
                &args,
            )?;
            let mut now_ns = worker_ns + 80_000;
            for kernel in 0..KERNELS {
                self.launches += 1;
                now_ns += gap_ns(kernel);
                let (name, launch) = (NAMES[(kernel % 5) as usize], self.launches);
                self.span(
                    FIRST_WORKER + worker,
                    name,
                    "kernel",
                    (now_ns - 6_000, 4_000),
                    &format!("\"launch\":{launch},\"grid\":6,\"stream\":0"),
                )?;
                self.span(FIRST_DEVICE + worker, name, "kernel", (now_ns, KERNEL_NS), &format!("\"launch\":{launch},\"host_wall_us\":4.0,\"device_wall_us\":90.0,\"queue_us\":6.0"))?;
                now_ns += KERNEL_NS;
            }
        }
        let over_ns = worker_ns + dur_ns + 30_000;
        self.span(
            ENGINE,
            "scheduler.update_from_output",
            "scheduler",
            (over_ns, 120_000),
            &format!("\"step\":{step},\"outputs\":{BATCH}"),
        )?;
        Ok(over_ns + 150_000)
    }
}
