//! Lines of the format in their canonical key order.

/// A time or duration in µs with three decimals.
pub fn micros(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}

/// The thread that an event belongs to.
#[derive(Clone, Copy, Debug)]
pub struct On {
    /// Its process.
    pub pid: u32,
    /// A thread's or a lane's id.
    pub tid: u32,
}

impl On {
    fn start(self, ph: &str, ts_ns: u64) -> String {
        format!(
            r#"{{"ph":"{ph}","pid":{},"tid":{},"ts":{}"#,
            self.pid,
            self.tid,
            micros(ts_ns)
        )
    }

    /// A complete span; `args` is the JSON text between the braces.
    pub fn span(self, ts_ns: u64, dur_ns: u64, name: &str, args: &str) -> String {
        format!(
            r#"{},"dur":{},"name":"{name}","cat":"worker","args":{{{args}}}}}"#,
            self.start("X", ts_ns),
            micros(dur_ns)
        )
    }

    /// A begun span without an end.
    pub fn begin(self, ts_ns: u64, name: &str) -> String {
        format!(
            r#"{},"name":"{name}","cat":"worker","args":{{"unfinished":true}}}}"#,
            self.start("B", ts_ns)
        )
    }

    /// An instant of thread scope.
    pub fn instant(self, ts_ns: u64, name: &str, args: &str) -> String {
        format!(
            r#"{},"s":"t","name":"{name}","cat":"serving","args":{{{args}}}}}"#,
            self.start("i", ts_ns)
        )
    }

    /// A counter sample.
    pub fn counter(self, ts_ns: u64, name: &str, series: &str) -> String {
        format!(
            r#"{},"name":"{name}","args":{{{series}}}}}"#,
            self.start("C", ts_ns)
        )
    }

    /// A flow event: `ph` is `s`, `t` or `f`; `scope` is `local` or `global`.
    pub fn flow(self, ph: &str, ts_ns: u64, scope: &str, id: u64) -> String {
        let binding = if ph == "f" { r#","bp":"e""# } else { "" };
        format!(
            r#"{},"id2":{{"{scope}":"0x{id:x}"}}{binding},"name":"request","cat":"flow"}}"#,
            self.start(ph, ts_ns)
        )
    }

    /// A metadata record.
    pub fn metadata(self, name: &str, args: &str) -> String {
        format!(
            r#"{{"ph":"M","pid":{},"tid":{},"name":"{name}","args":{{{args}}}}}"#,
            self.pid, self.tid
        )
    }

    /// The record of lost events; `place` explains positions, e.g. `,"slot":1,"gen":0,"from":0,"to":9`.
    pub fn loss(self, ts_ns: u64, cause: &str, events: u64, place: &str) -> String {
        let args = format!(r#""cause":"{cause}","events":{events}{place}"#);
        format!(
            r#"{},"s":"p","name":"sa_loss","cat":"sa_profile","args":{{{args}}}}}"#,
            self.start("i", ts_ns)
        )
    }
}

/// Lines joined as a stream holds them, each with its newline.
pub fn stream<S: AsRef<str>>(lines: &[S]) -> Vec<u8> {
    lines
        .iter()
        .flat_map(|line| [line.as_ref().as_bytes(), b"\n"].concat())
        .collect()
}
