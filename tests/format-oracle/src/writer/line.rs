//! Lines of the format in their canonical key order.

/// Formats a time or duration in µs with three decimals.
pub fn micros(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}

/// The thread that an event belongs to.
#[derive(Clone, Copy, Debug)]
pub struct On {
    /// Process of the thread.
    pub pid: u32,
    /// Id of the thread or lane.
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

    /// Returns a complete span. `args` is the JSON text between the braces.
    pub fn span(self, ts_ns: u64, dur_ns: u64, name: &str, args: &str) -> String {
        format!(
            r#"{},"dur":{},"name":"{name}","cat":"worker","args":{{{args}}}}}"#,
            self.start("X", ts_ns),
            micros(dur_ns)
        )
    }

    /// Returns the begin of a span without an end.
    pub fn begin(self, ts_ns: u64, name: &str) -> String {
        format!(
            r#"{},"name":"{name}","cat":"worker","args":{{"unfinished":true}}}}"#,
            self.start("B", ts_ns)
        )
    }

    /// Returns an instant of thread scope.
    pub fn instant(self, ts_ns: u64, name: &str, args: &str) -> String {
        format!(
            r#"{},"s":"t","name":"{name}","cat":"serving","args":{{{args}}}}}"#,
            self.start("i", ts_ns)
        )
    }

    /// Returns a counter sample.
    pub fn counter(self, ts_ns: u64, name: &str, series: &str) -> String {
        format!(
            r#"{},"name":"{name}","args":{{{series}}}}}"#,
            self.start("C", ts_ns)
        )
    }

    /// Returns a flow event. `ph` is `s`, `t` or `f`, and `scope` is `local` or `global`.
    pub fn flow(self, ph: &str, ts_ns: u64, scope: &str, id: u64) -> String {
        let binding = if ph == "f" { r#","bp":"e""# } else { "" };
        format!(
            r#"{},"id2":{{"{scope}":"0x{id:x}"}}{binding},"name":"request","cat":"flow"}}"#,
            self.start(ph, ts_ns)
        )
    }

    /// Returns a metadata record.
    pub fn metadata(self, name: &str, args: &str) -> String {
        format!(
            r#"{{"ph":"M","pid":{},"tid":{},"name":"{name}","args":{{{args}}}}}"#,
            self.pid, self.tid
        )
    }

    /// Returns a record of lost events. `place` contains the positions, for example `,"slot":1,"gen":0,"from":0,"to":9`.
    pub fn loss(self, ts_ns: u64, cause: &str, events: u64, place: &str) -> String {
        let args = format!(r#""cause":"{cause}","events":{events}{place}"#);
        format!(
            r#"{},"s":"p","name":"sa_loss","cat":"sa_profile","args":{{{args}}}}}"#,
            self.start("i", ts_ns)
        )
    }
}

/// Joins lines into a stream, each with its newline.
pub fn stream<S: AsRef<str>>(lines: &[S]) -> Vec<u8> {
    lines
        .iter()
        .flat_map(|line| [line.as_ref().as_bytes(), b"\n"].concat())
        .collect()
}
