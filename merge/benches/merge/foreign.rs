//! Generates traces of other programs: fragments of pypto-serving's recorder (no header, integer µs, tids that are 47-bit addresses, spans sorted by end), and
//! traces of PyTorch's profiler (Kineto).

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::lines::{Counts, Random, Us};

const LANES: u64 = 12;
/// Number of requests that a worker serves at a time. Two of them are in each step, and every fourth new request replaces one, so each is in about 16 steps.
const SERVED: usize = 8;
const START_US: u64 = 2_431_580_341;

/// A process whose file is being written.
struct Writer {
    out: BufWriter<File>,
    bytes: u64,
    pid: u32,
    random: Random,
    now_us: u64,
    /// Ids of the requests that are being served.
    served: [u64; SERVED],
    counts: Counts,
}

/// Writes the fragment of pypto-serving's process `index`, of at least `bytes` bytes.
pub(crate) fn write(directory: &Path, index: u32, bytes: u64) -> io::Result<Counts> {
    let pid = 23_149 + index * 17;
    let mut writer = Writer::new(&directory.join(format!("trace.{pid}.jsonl")), index, pid)?;
    writer.names(index)?;
    while writer.bytes < bytes {
        match writer.random.below(3) {
            0 => writer.request()?,
            _ => writer.worker_step()?,
        }
    }
    writer.out.flush()?;
    Ok(writer.counts)
}

/// Writes the trace of a rank as Kineto exports it, of at least `bytes` bytes.
pub(crate) fn write_kineto(directory: &Path, index: u32, bytes: u64) -> io::Result<Counts> {
    let pid = 41_000 + index;
    let path = directory.join(format!("rank{index}.pt.trace.json"));
    let mut writer = Writer::new(&path, index, pid)?;
    let line = format_args!(
        r#"{{"schemaVersion":1,"distributedInfo":{{"backend":"nccl","rank":{index},"world_size":8}},"baseTimeNanoseconds":1751410836000000000,"traceEvents":["#
    );
    writer.put(line)?;
    for (pid, labels) in [(pid, "CPU".to_owned()), (index, format!("GPU {index}"))] {
        let line = format_args!(
            r#"{{"ph":"M","name":"process_name","pid":{pid},"tid":0,"ts":0,"args":{{"name":"python3"}}}},
{{"ph":"M","name":"process_labels","pid":{pid},"tid":0,"ts":0,"args":{{"labels":"{labels}"}}}},"#
        );
        writer.put(line)?;
    }
    let mut correlation = 0;
    while writer.bytes < bytes {
        correlation += 1;
        writer.launch(index, correlation)?;
    }
    let end_us = writer.now_us;
    writer.put(format_args!(
        r#"{{"ph":"i","s":"g","name":"Record Window End","pid":"","tid":"","ts":{end_us}}}]}}"#
    ))?;
    *writer.counts.entry('i').or_default() += 1;
    writer.out.flush()?;
    Ok(writer.counts)
}

/// Returns the address that lane `number` of a process uses as its tid.
fn tid(pid: u32, number: u64) -> u64 {
    139_662_951_478_848 + u64::from(pid) * 4_194_304 + number * 960
}

impl Writer {
    fn new(path: &Path, index: u32, pid: u32) -> io::Result<Self> {
        Ok(Writer {
            out: BufWriter::with_capacity(1 << 20, File::create(path)?),
            bytes: 0,
            pid,
            random: Random::new(100 + index),
            now_us: START_US + u64::from(index) * 7,
            served: std::array::from_fn(|nth| u64::from(index) << 24 | nth as u64),
            counts: Counts::new(),
        })
    }

    fn put(&mut self, line: fmt::Arguments<'_>) -> io::Result<()> {
        let line = format!("{line}\n");
        self.bytes += line.len() as u64;
        self.out.write_all(line.as_bytes())
    }

    fn names(&mut self, index: u32) -> io::Result<()> {
        let pid = self.pid;
        for name in [
            "pypto-serving".to_owned(),
            format!("serving-worker-{index}"),
        ] {
            let line = format_args!(
                r#"{{"name":"process_name","ph":"M","pid":{pid},"tid":0,"args":{{"name":"{name}"}}}}"#
            );
            self.put(line)?;
        }
        Ok(())
    }

    fn span(
        &mut self,
        (name, category): (&str, &str),
        (ts, dur): (u64, u64),
        lane: u64,
        args: fmt::Arguments<'_>,
    ) -> io::Result<()> {
        let (pid, tid) = (self.pid, tid(self.pid, lane));
        *self.counts.entry('X').or_default() += 1;
        let line = format_args!(
            r#"{{"name":"{name}","cat":"{category}","ph":"X","ts":{ts},"dur":{dur},"pid":{pid},"tid":{tid},"args":{{{args}}}}}"#
        );
        self.put(line)
    }

    /// Writes a step of a worker, with the innermost span first.
    fn worker_step(&mut self) -> io::Result<()> {
        let start = self.now_us + self.random.below(200);
        let kernel = 200 + self.random.below(2_000);
        let [first, second] = [(); 2].map(|()| self.served[self.random.index(SERVED)]);
        let line = format_args!(
            r#""kernel":"qwen3_decode","runtime":"cpu","block_dim":1,"aicpu_thread_num":1,"host_wall_us":{kernel}.368,"device_wall_us":{kernel}.8312"#
        );
        self.span(
            ("kernel.l2.qwen3_decode", "kernel"),
            (start + 60, kernel),
            0,
            line,
        )?;
        self.span(
            ("PyptoExecutor.run_decode", "executor"),
            (start + 40, kernel + 90),
            0,
            format_args!(r#""model_id":"tiny","batch_size":2"#),
        )?;
        self.span(
            ("WorkerProcess.batch_decode", "worker"),
            (start + 20, kernel + 160),
            0,
            format_args!(
                r#""batch_size":2,"request_ids":["cmpl-{first:08x}","cmpl-{second:08x}"]"#
            ),
        )?;
        self.span(
            ("WorkerProcess.execute_step", "worker"),
            (start, kernel + 200),
            0,
            format_args!(r#""prefill":0,"decode":2"#),
        )?;
        self.now_us = start + kernel + 210;
        Ok(())
    }

    /// Writes a request's part in the API process, on one of the task lanes.
    fn request(&mut self) -> io::Result<()> {
        let lane = 1 + self.random.below(LANES - 1);
        let (pid, tid) = (self.pid, tid(self.pid, lane));
        let start = self.now_us + self.random.below(100);
        let id = self.random.next() >> 32;
        if self.random.below(4) == 0 {
            self.served[self.random.index(SERVED)] = id;
        }
        *self.counts.entry('i').or_default() += 1;
        let ts = start + 12;
        let line = format_args!(
            r#"{{"name":"request.queued","cat":"serving","ph":"i","s":"t","ts":{ts},"pid":{pid},"tid":{tid},"args":{{"request_id":"cmpl-{id:08x}","prompt_tokens":12}}}}"#
        );
        self.put(line)?;
        self.span(
            ("ReplicaEngineCore.add_request", "serving"),
            (start, 142),
            lane,
            format_args!(r#""request_id":"cmpl-{id:08x}","max_new_tokens":24"#),
        )?;
        self.span(
            ("scheduler.schedule", "scheduler"),
            (start + 160, 10 + id % 100),
            lane,
            format_args!(""),
        )?;
        self.now_us = start + 300;
        Ok(())
    }

    /// Writes an operator, the launch in it, the kernel on the GPU, and the arrow between the two.
    fn launch(&mut self, gpu: u32, correlation: u64) -> io::Result<()> {
        let pid = self.pid;
        let (start, kernel) = (self.now_us, 20 + self.random.below(200));
        let op = ["aten::mm", "aten::add_", "aten::softmax"][self.random.index(3)];
        let us = |us: u64| Us(us * 1_000 + 231);
        let (begin, launch, on_gpu) = (us(start), us(start + 4), us(start + 9));
        let line = format_args!(
            r#"{{"ph":"X","cat":"cpu_op","name":"{op}","pid":{pid},"tid":{pid},"ts":{begin},"dur":14.116,"args":{{"External id":{correlation},"Record function id":0,"Ev Idx":{correlation}}}}},
{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":{pid},"tid":{pid},"ts":{launch},"dur":3.5,"args":{{"External id":{correlation},"cbid":211,"correlation":{correlation}}}}},
{{"ph":"s","id":{correlation},"pid":{pid},"tid":{pid},"ts":{launch},"cat":"ac2g","name":"ac2g"}},
{{"ph":"X","cat":"kernel","name":"ampere_sgemm_128x64_tn","pid":{gpu},"tid":7,"ts":{on_gpu},"dur":{kernel},"args":{{"External id":{correlation},"device":{gpu},"context":1,"stream":7,"correlation":{correlation},"grid":[16,2,1],"block":[128,1,1]}}}},
{{"ph":"f","id":{correlation},"pid":{gpu},"tid":7,"ts":{on_gpu},"cat":"ac2g","name":"ac2g","bp":"e"}},"#
        );
        self.put(line)?;
        for (phase, count) in [('X', 3), ('s', 1), ('f', 1)] {
            *self.counts.entry(phase).or_default() += count;
        }
        self.now_us = start + 15 + kernel;
        Ok(())
    }
}
