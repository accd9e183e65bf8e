//! Checks that a file is a trace in the Chrome trace format, plain or gzipped, and reads its `otherData`. Reads no further than the first event.

use flate2::read::MultiGzDecoder;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::fs::File;
use std::io::{BufReader, Read};
use std::os::unix::fs::FileExt;
use trace_report::TraceView;

/// The first bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The members of a trace's `otherData` that matter here. They are empty unless a merge wrote it.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Head {
    /// The program that wrote the trace.
    pub(super) tool: String,
    /// Ids of the runs that the trace shows.
    pub(super) runs: Vec<String>,
    /// The part that a viewer shows at first.
    pub(super) view: Option<TraceView>,
}

/// Checks that a file is a trace: an array of events, or an object whose member `traceEvents` is one. The first event decides. Returns the
/// `otherData` before it.
///
/// # Errors
/// Returns a description of what was found instead.
pub(super) fn check_trace(file: &File) -> Result<Head, String> {
    let mut front = [0; GZIP.len()];
    let is_gzip = file.read_exact_at(&mut front, 0).is_ok() && front == GZIP;
    let reader: Box<dyn Read + '_> = match is_gzip {
        true => Box::new(MultiGzDecoder::new(BufReader::new(file))),
        false => Box::new(file),
    };
    check_json(BufReader::new(reader))
}

fn check_json(reader: impl Read) -> Result<Head, String> {
    let (is_trace, head) = (Cell::new(false), RefCell::default());
    let mut json = serde_json::Deserializer::from_reader(reader);
    let read = json.deserialize_any(Document {
        is_trace: &is_trace,
        head: &head,
    });
    match read {
        _ if is_trace.get() => Ok(head.into_inner()),
        Ok(()) => Err("found JSON without traceEvents".to_owned()),
        Err(error) if error.is_data() => Err("found JSON that has no trace events".to_owned()),
        Err(error) => Err(format!("found no JSON: {error}")),
    }
}

/// An event of the Chrome trace format, which has a phase.
#[derive(Deserialize)]
struct Event {
    #[serde(rename = "ph")]
    _phase: IgnoredAny,
}

/// Visitor that reads a document up to its first event.
#[derive(Clone, Copy)]
struct Document<'a> {
    is_trace: &'a Cell<bool>,
    /// The value of `otherData`.
    head: &'a RefCell<Head>,
}

impl<'de> Visitor<'de> for Document<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a trace")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut events: A) -> Result<(), A::Error> {
        let first = events.next_element::<Event>()?;
        self.is_trace.set(true);
        match first {
            None => Ok(()),
            Some(_) => Err(A::Error::custom("enough")),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(key) = members.next_key::<String>()? {
            match key.as_str() {
                "traceEvents" => members.next_value_seed(Events(self))?,
                "otherData" => {
                    let mut data = members.next_value::<Value>()?;
                    // A later version may have another kind of view. The rest is still usable.
                    let view = data.get("view").cloned().unwrap_or_default();
                    if serde_json::from_value::<Option<TraceView>>(view).is_err() {
                        data["view"] = Value::Null;
                    }
                    let head = serde_json::from_value(data);
                    self.head.replace(head.unwrap_or_default());
                }
                _ => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// The value of `traceEvents`.
struct Events<'a>(Document<'a>);

impl<'de> de::DeserializeSeed<'de> for Events<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn check(bytes: &[u8]) -> Result<Head, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        check_trace(file.as_file())
    }

    #[test]
    fn traces_of_every_form_are_accepted() {
        for text in [
            "[]",
            "\n[{\"name\":\"x\",\"ph\":\"X\",\"args\":{\"a\":[1]}},",
            "{\"traceEvents\":[]}",
            "{\"schemaVersion\":1,\"deviceProperties\":[{\"id\":0}],\"traceEvents\":[\n{\"ph\":\"M\"}, cut",
        ] {
            assert_eq!(check(text.as_bytes()), Ok(Head::default()), "{text}");
            let level = flate2::Compression::fast();
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), level);
            gzip.write_all(text.as_bytes()).unwrap();
            assert_eq!(
                check(&gzip.finish().unwrap()),
                Ok(Head::default()),
                "{text}"
            );
        }
    }

    #[test]
    fn other_files_are_refused() {
        for (bytes, found) in [
            (&b"root:x:0:0:root:/root:/bin/bash\n"[..], "found no JSON"),
            (b"{\"key\": \"secret\"}", "without traceEvents"),
            (b"{\"traceEvents\":\"secret\"}", "no trace events"),
            (b"[1,2]", "no trace events"),
            (b"[{\"name\":\"x\"}]", "no trace events"),
            (b"\"secret\"", "no trace events"),
            (b"\x1f\xef\xbf\xbd", "found no JSON"),
            (b"{\"a\":1", "found no JSON"),
            (b"\x1f\x8b\x08\0", "found no JSON"),
        ] {
            let refused = check(bytes).unwrap_err();
            assert!(refused.contains(found), "{bytes:?}: {refused}");
        }
    }

    #[test]
    fn the_runs_of_a_merged_trace_are_known() {
        for (data, expected) in [
            (r#"{"tool":"x","runs":["a","b"]}"#, &["a", "b"][..]),
            (r#"{"runs":["a"],"view":{"begin":1}}"#, &["a"]),
            (r#"{"runs":7}"#, &[]),
            ("[1]", &[]),
            ("null", &[]),
        ] {
            let text = format!("{{\"otherData\":{data},\"traceEvents\":[{{\"ph\":\"M\"}}, cut");
            assert_eq!(check(text.as_bytes()).unwrap().runs, expected, "{data}");
        }
    }
}
