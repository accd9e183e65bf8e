//! Fragments in the form of pypto-serving's recorder: no header, integer µs, tids that are 47-bit addresses, spans in order of their end.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::lines::{Counts, Random};

const LANES: u64 = 12;
/// Requests that a worker serves at a time: with two of them in each step and every fourth that comes among them, each is in sixteen steps.
const SERVED: usize = 8;
const START_US: u64 = 2_431_580_341;

/// One process while its fragment is written.
struct Writer {
    out: Vec<u8>,
    pid: u32,
    random: Random,
    now_us: u64,
    /// The requests that are served now.
    served: [u64; SERVED],
    counts: Counts,
}

/// Writes fragment `index` of at least `bytes` bytes into `directory`.
pub(crate) fn write(directory: &Path, index: u32, bytes: u64) -> io::Result<Counts> {
    let pid = 23_149 + index * 17;
    let file = File::create(directory.join(format!("trace.{pid}.jsonl")))?;
    let mut file = BufWriter::with_capacity(1 << 20, file);
    let mut writer = Writer {
        out: Vec::new(),
        pid,
        random: Random::new(100 + index),
        now_us: START_US + u64::from(index) * 7,
        served: std::array::from_fn(|nth| u64::from(index) << 24 | nth as u64),
        counts: Counts::default(),
    };
    writer.names(index)?;
    let mut written = 0;
    while written < bytes {
        match writer.random.below(3) {
            0 => writer.request()?,
            _ => writer.worker_step()?,
        }
        file.write_all(&writer.out)?;
        written += writer.out.len() as u64;
        writer.out.clear();
    }
    file.flush()?;
    Ok(writer.counts)
}

/// The address that lane `number` of a process has for a tid.
fn tid(pid: u32, number: u64) -> u64 {
    139_662_951_478_848 + u64::from(pid) * 4_194_304 + number * 960
}

impl Writer {
    fn names(&mut self, index: u32) -> io::Result<()> {
        let pid = self.pid;
        for name in [
            "pypto-serving".to_owned(),
            format!("serving-worker-{index}"),
        ] {
            writeln!(
                self.out,
                r#"{{"name":"process_name","ph":"M","pid":{pid},"tid":0,"args":{{"name":"{name}"}}}}"#
            )?;
        }
        for number in 0..LANES {
            let tid = tid(pid, number);
            writeln!(
                self.out,
                r#"{{"name":"thread_name","ph":"M","pid":{pid},"tid":{tid},"args":{{"name":"Task-{number}"}}}}"#
            )?;
        }
        Ok(())
    }

    fn span(
        &mut self,
        name: &str,
        category: &str,
        (ts, dur): (u64, u64),
        tid: u64,
        args: &str,
    ) -> io::Result<()> {
        let pid = self.pid;
        self.counts.add('X');
        writeln!(
            self.out,
            r#"{{"name":"{name}","cat":"{category}","ph":"X","ts":{ts},"dur":{dur},"pid":{pid},"tid":{tid},"args":{{{args}}}}}"#
        )
    }

    /// One of those that are served.
    fn served(&mut self) -> u64 {
        let place = usize::try_from(self.random.below(SERVED as u64)).unwrap_or(0);
        self.served[place]
    }

    /// A step of a worker, innermost span first.
    fn worker_step(&mut self) -> io::Result<()> {
        let tid = tid(self.pid, 0);
        let start = self.now_us + self.random.below(200);
        let kernel = 200 + self.random.below(2_000);
        let (first, second) = (self.served(), self.served());
        let wall = format!(
            r#""kernel":"qwen3_decode","runtime":"cpu","block_dim":1,"aicpu_thread_num":1,"host_wall_us":{kernel}.368,"device_wall_us":{kernel}.8312"#
        );
        self.span(
            "kernel.l2.qwen3_decode",
            "kernel",
            (start + 60, kernel),
            tid,
            &wall,
        )?;
        self.span(
            "PyptoExecutor.run_decode",
            "executor",
            (start + 40, kernel + 90),
            tid,
            r#""model_id":"tiny","batch_size":2"#,
        )?;
        let requests =
            format!(r#""batch_size":2,"request_ids":["cmpl-{first:08x}","cmpl-{second:08x}"]"#);
        self.span(
            "WorkerProcess.batch_decode",
            "worker",
            (start + 20, kernel + 160),
            tid,
            &requests,
        )?;
        self.span(
            "WorkerProcess.execute_step",
            "worker",
            (start, kernel + 200),
            tid,
            r#""prefill":0,"decode":2"#,
        )?;
        self.now_us = start + kernel + 210;
        Ok(())
    }

    /// A request's part in the API process, on one of the task lanes.
    fn request(&mut self) -> io::Result<()> {
        let lane = 1 + self.random.below(LANES - 1);
        let (pid, tid) = (self.pid, tid(self.pid, lane));
        let (start, id) = (
            self.now_us + self.random.below(100),
            self.random.next() >> 32,
        );
        if self.random.below(4) == 0 {
            let place = usize::try_from(self.random.below(SERVED as u64)).unwrap_or(0);
            self.served[place] = id;
        }
        let ts = start + 12;
        self.counts.add('i');
        writeln!(
            self.out,
            r#"{{"name":"request.queued","cat":"serving","ph":"i","s":"t","ts":{ts},"pid":{pid},"tid":{tid},"args":{{"request_id":"cmpl-{id:08x}","prompt_tokens":12}}}}"#
        )?;
        let request = format!(r#""request_id":"cmpl-{id:08x}","max_new_tokens":24"#);
        self.span(
            "ReplicaEngineCore.add_request",
            "serving",
            (start, 142),
            tid,
            &request,
        )?;
        self.span(
            "scheduler.schedule",
            "scheduler",
            (start + 160, 10 + self_dur(id)),
            tid,
            "",
        )?;
        self.now_us = start + 300;
        Ok(())
    }
}

/// A duration between 0 and 100 µs that follows from the request.
fn self_dur(id: u64) -> u64 {
    id % 100
}
