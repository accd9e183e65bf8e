//! Requests served in batches, in the form of pypto-serving's recorder: one file of the API process, the others of workers whose steps serve 16
//! requests at a time, each of them in 64 steps.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::lines::Counts;

const BATCH: u64 = 16;
const STEPS: u64 = 64;
const START_US: u64 = 2_431_580_341;

/// One process while its fragment is written.
struct Writer {
    out: Vec<u8>,
    pid: u32,
    counts: Counts,
}

/// Writes fragment `index` of at least `bytes` bytes into `directory`; the first one is the API process.
pub(crate) fn write(directory: &Path, index: u32, bytes: u64) -> io::Result<Counts> {
    let pid = 23_149 + index * 17;
    let file = File::create(directory.join(format!("trace.{pid}.jsonl")))?;
    let mut file = BufWriter::with_capacity(1 << 20, file);
    let mut writer = Writer {
        out: Vec::new(),
        pid,
        counts: Counts::default(),
    };
    let mut written = 0;
    for number in 0.. {
        if written >= bytes {
            break;
        }
        match index {
            0 => writer.request(number)?,
            _ => writer.step(u64::from(index), number)?,
        }
        file.write_all(&writer.out)?;
        written += writer.out.len() as u64;
        writer.out.clear();
    }
    file.flush()?;
    Ok(writer.counts)
}

/// The id of a request. Those of one batch come together, and go together.
fn id(number: u64) -> String {
    format!(
        "cmpl-{:08x}",
        number.wrapping_mul(0x9e37_79b9) & 0xffff_ffff
    )
}

impl Writer {
    fn line(
        &mut self,
        name: &str,
        phase: char,
        (ts, dur): (u64, u64),
        args: &str,
    ) -> io::Result<()> {
        let (pid, tid) = (self.pid, 139_662_951_478_848_u64 + u64::from(self.pid));
        let extent = match phase {
            'X' => format!(r#""dur":{dur},"#),
            _ => String::new(),
        };
        let scope = if phase == 'i' { r#""s":"t","# } else { "" };
        self.counts.add(phase);
        writeln!(
            self.out,
            r#"{{"name":"{name}","cat":"serving","ph":"{phase}",{scope}"ts":{ts},{extent}"pid":{pid},"tid":{tid},"args":{{{args}}}}}"#
        )
    }

    fn request(&mut self, number: u64) -> io::Result<()> {
        let args = format!(r#""request_id":"{}","max_new_tokens":24"#, id(number));
        let ts = START_US + number * 100;
        self.line("request.queued", 'i', (ts + 12, 0), &args)?;
        self.line("ReplicaEngineCore.add_request", 'X', (ts, 90), &args)
    }

    /// A step of a worker, which serves every seventh batch: the workers are seven.
    fn step(&mut self, worker: u64, number: u64) -> io::Result<()> {
        let first = (number / STEPS * 7 + worker - 1) * BATCH;
        let ids: Vec<String> = (first..first + BATCH)
            .map(|number| format!("\"{}\"", id(number)))
            .collect();
        let args = format!(r#""batch_size":{BATCH},"request_ids":[{}]"#, ids.join(","));
        let ts = START_US + first * 100 + 10_000 + number % STEPS * 100;
        let block = r#""block_dim":1"#;
        self.line("kernel.l2.qwen3_decode", 'X', (ts + 1, 80), block)?;
        self.line("WorkerProcess.batch_decode", 'X', (ts, 90), &args)
    }
}
