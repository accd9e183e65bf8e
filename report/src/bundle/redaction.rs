//! Copies a merged trace without its private parts.
//! Reads the trace that a merge wrote, one event per line, and writes the same events with their times, tracks and
//! names of code. Only members and args listed here are kept. Everything else is left out and counted: texts in args,
//! unknown members, paths in names, arguments in process names. Ids of requests, communicators, hosts and inputs become
//! pseudonyms.

use super::texts::{Pseudonyms, code_name, is_ours, is_word, role};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::io::{self, BufRead, Write};
use trace_merge::json::{Members, build_object, last_member};

/// Members of events that are numbers or booleans.
const NUMBERS: [&[u8]; 8] = [
    b"pid",
    b"tid",
    b"ts",
    b"dur",
    b"tts",
    b"tdur",
    b"flow_in",
    b"flow_out",
];
/// Args whose texts are short words, such as `prefill` or `float16`.
const WORDS: [&str; 24] = [
    "version",
    "engine_version",
    "vllm_ascend_version",
    "torch_version",
    "torch_npu_version",
    "cann_version",
    "phase",
    "dtype",
    "reason",
    "cause",
    "mode",
    "kind",
    "level",
    "levels",
    "stage",
    "state",
    "signal",
    "trigger",
    "method",
    "op",
    "Collective name",
    "engine",
    "graph_mode",
    "kv_role",
];
/// Args that contain the id of a request. With an `s` appended, they contain a list of ids.
const REQUEST_IDS: [&str; 12] = [
    "request_id",
    "internal_id",
    "internal_request_id",
    "internal_req_id",
    "external_id",
    "external_request_id",
    "external_req_id",
    "x_request_id",
    "req_id",
    "rid",
    "preempted_id",
    "finished_id",
];
/// Args that name a communicator.
const COMMUNICATORS: [&str; 3] = ["comm", "Process Group Name", "Process Group Ranks"];
/// Args that are lists of numbers. Other lists may be the tokens of a prompt.
const LISTS: [&str; 3] = ["request_numbers", "output_tokens_each", "capture_sizes"];
/// Numeric args that could identify a prompt or a user.
const PRIVATE_NUMBERS: [&str; 6] = ["block_hash", "hash", "seed", "token", "token_id", "user_id"];
/// Prefix of the part of a process's labels that contains its pid. [`HOST`] may follow.
const PID: &str = "pid ";
const HOST: &str = " host ";
/// Prefix of the part of a process's labels that names the trace with all kernels of a device.
const SAMPLED: &str = "sampled; all kernels in ";
/// Maximum length of a number in bytes.
const MOST_DIGITS: usize = 40;

/// The names that replace private texts of a trace, and counts of the texts that were removed.
#[derive(Debug)]
pub(super) struct Redaction {
    requests: Pseudonyms,
    communicators: Pseudonyms,
    hosts: Pseudonyms,
    inputs: Pseudonyms,
    /// Pseudonyms for textual ids of arrows and async spans.
    ids: Pseudonyms,
    /// Number of args and members that were left out.
    left_out: u64,
    /// Number of names that were shortened.
    shortened: u64,
}

impl Default for Redaction {
    fn default() -> Redaction {
        Redaction {
            requests: Pseudonyms::new("r"),
            communicators: Pseudonyms::new("c"),
            hosts: Pseudonyms::new("host"),
            inputs: Pseudonyms::new("input"),
            // Hexadecimal, as viewers expect, and larger than any id that a recorder counts up to.
            ids: Pseudonyms::new("0xfeed0000"),
            left_out: 0,
            shortened: 0,
        }
    }
}

impl Redaction {
    /// Copies a JSON trace to `out` without its private values, such as hosts, file names and texts of the program.
    ///
    /// # Errors
    /// If the trace cannot be read or the copy cannot be written.
    pub(super) fn copy(&mut self, mut trace: impl BufRead, mut out: impl Write) -> io::Result<()> {
        let mut line = Vec::new();
        trace.read_until(b'\n', &mut line)?;
        let data = other_data(&line);
        write!(
            out,
            "{{\"displayTimeUnit\":\"ns\",\"otherData\":{data},\"traceEvents\":["
        )?;
        let mut separator = "\n";
        loop {
            line.clear();
            if trace.read_until(b'\n', &mut line)? == 0 {
                break;
            }
            let event = line.trim_ascii_end();
            let event = event.strip_suffix(b",").unwrap_or(event);
            if event.first() != Some(&b'{') {
                continue;
            }
            if let Some(event) = self.event(event) {
                out.write_all(separator.as_bytes())?;
                out.write_all(&event)?;
                separator = ",\n";
            }
        }
        out.write_all(b"\n]}\n")?;
        out.flush()
    }

    /// Returns an event of the trace (one line of JSON) without private values, or `None` for unknown metadata.
    fn event(&mut self, line: &[u8]) -> Option<Vec<u8>> {
        let is_metadata = last_member(line, b"ph") == Some(b"\"M\"");
        let about = match is_metadata {
            true => Some(last_member(line, b"name").and_then(metadata)?),
            false => None,
        };
        let members = Members::new(line).filter_map(|(key, value)| {
            let value = match key {
                b"ph" | b"s" | b"bp" => (value.len() <= 3).then_some(Cow::from(value)),
                b"id" | b"bind_id" => self.id(value),
                b"id2" => {
                    let inner =
                        Members::new(value).filter(|(key, _)| matches!(*key, b"local" | b"global"));
                    let inner: Vec<_> = inner
                        .filter_map(|(key, id)| Some((key, self.id(id)?)))
                        .collect();
                    Some(Cow::from(build_object(inner)))
                }
                b"name" | b"cat" => Some(self.renamed(value, code_name)),
                b"args" => Some(Cow::from(self.args(value, about))),
                _ => number(value).filter(|_| NUMBERS.contains(&key)),
            };
            self.left_out += u64::from(value.is_none());
            Some((key, value?))
        });
        let members: Vec<_> = members.collect();
        Some(build_object(members))
    }

    /// Returns the args of an event, as JSON, without private values, and counts the args that are left out. `about` is
    /// the kind of a metadata event. Its args contain a name, labels, a number or settings.
    fn args(&mut self, args: &[u8], about: Option<Metadata>) -> Vec<u8> {
        let members = Members::new(args).filter_map(|(key, value)| {
            let name = std::str::from_utf8(key).ok()?;
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            let is_listed = WORDS.contains(&name) || COMMUNICATORS.contains(&name);
            let is_name = name.len() <= MOST_DIGITS && name.bytes().all(is_plain);
            let value = match about {
                _ if !is_name && !is_listed => None,
                Some(Metadata::Process) if name == "name" => Some(self.renamed(value, role)),
                Some(Metadata::Thread) if name == "name" => Some(self.renamed(value, code_name)),
                Some(Metadata::Labels) if name == "labels" => {
                    text(value).and_then(|labels| json_text(&self.labels(&labels)))
                }
                Some(Metadata::Order) if name == "sort_index" => number(value),

                Some(Metadata::Settings) | None => self.arg(name, value),
                Some(_) => None,
            };
            self.left_out += u64::from(value.is_none());
            Some((key, value?))
        });
        let members: Vec<_> = members.collect();
        build_object(members)
    }

    fn arg<'a>(&mut self, name: &str, value: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        let one = name.strip_suffix('s').unwrap_or(name);
        if REQUEST_IDS.contains(&one) {
            let requests = &mut self.requests;
            let ids: Value = serde_json::from_slice(value).ok()?;
            let mut named = |id: &Value| match id {
                Value::String(id) => Some(Value::from(requests.name(id))),
                Value::Number(id) => Some(Value::from(requests.name(&id.to_string()))),
                _ => None,
            };
            let ids = match &ids {
                Value::Array(ids) => ids.iter().filter_map(named).collect(),
                id => named(id)?,
            };
            return serde_json::to_vec(&ids).ok().map(Cow::from);
        }
        if COMMUNICATORS.contains(&name) {
            return json_text(&self.communicators.name(&String::from_utf8_lossy(value)));
        }
        let is_of_words = WORDS.contains(&name);
        let is_kept = match value.first()? {
            b'"' => is_of_words && text(value).is_some_and(|text| is_word(&text)),
            b'[' if is_of_words => {
                let words: Option<Vec<String>> = serde_json::from_slice(value).ok();
                words.is_some_and(|words| words.iter().all(|word| is_word(word)))
            }
            b'[' => LISTS.contains(&name) && serde_json::from_slice::<Vec<f64>>(value).is_ok(),
            _ => return number(value).filter(|_| !PRIVATE_NUMBERS.contains(&name)),
        };
        is_kept.then_some(Cow::from(value))
    }

    /// Returns the id of an arrow or an async span. A textual id from the program gets a pseudonym.
    fn id<'a>(&mut self, value: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        let Some(id) = text(value) else {
            return number(value);
        };
        let digits = id.strip_prefix("0x");
        let is_hex = digits.is_some_and(|digits| {
            digits.len() <= 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        });
        match is_hex {
            true => Some(Cow::from(value)),
            false => json_text(&self.ids.name(&id)),
        }
    }

    /// Returns the labels of a process without hosts and file names.
    fn labels(&mut self, labels: &str) -> String {
        let parts = labels.split(',').map(|part| {
            let part = part.trim();
            if let Some(pid) = part.strip_prefix(PID) {
                let (pid, host) = pid
                    .split_once(HOST)
                    .map_or((pid, None), |(pid, host)| (pid, Some(host)));
                let pid = match pid.parse::<i64>() {
                    Ok(pid) => pid.to_string(),
                    Err(_) => self.inputs.name(pid),
                };
                let host = host.map_or(String::new(), |host| format!("{HOST}{}", self.host(host)));
                format!("{PID}{pid}{host}")
            } else if let Some(trace) = part.strip_prefix(SAMPLED) {
                format!("{SAMPLED}{}", self.inputs.name(trace))
            } else if is_ours(part) {
                part.to_owned()
            } else {
                self.inputs.name(part)
            }
        });
        parts.collect::<Vec<_>>().join(", ")
    }

    /// Returns the pseudonym that replaces the name of a host. Equal names get the same pseudonym.
    pub(super) fn host(&mut self, host: &str) -> String {
        self.hosts.name(host)
    }

    /// Shortens a name with `shorter`, and counts it if it changed.
    fn renamed<'a>(&mut self, value: &'a [u8], shorter: fn(&str) -> String) -> Cow<'a, [u8]> {
        let Some(name) = text(value) else {
            return Cow::from(&b"\"\""[..]);
        };
        let short = shorter(&name);
        if short == name {
            return Cow::from(value);
        }
        self.shortened += 1;
        json_text(&short).unwrap_or_default()
    }

    /// Returns one phrase for each kind of text that was removed or replaced, with its count.
    pub(super) fn summary(&self) -> Vec<String> {
        let counts = [
            ("args left out (texts, lists and objects)", self.left_out),
            (
                "names shortened (paths, addresses, arguments of commands)",
                self.shortened,
            ),
            ("requests renamed (r1, r2, …)", self.requests.len() as u64),
            ("hosts renamed (host1, host2, …)", self.hosts.len() as u64),
            (
                "files renamed (input1, input2, …)",
                self.inputs.len() as u64,
            ),
        ];
        let found = counts.into_iter().filter(|(_, count)| *count > 0);
        found
            .map(|(what, count)| format!("{what}: {count}"))
            .collect()
    }
}

/// Kinds of metadata that the copy keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Metadata {
    Process,
    Thread,
    Labels,
    Order,
    Settings,
}

fn metadata(name: &[u8]) -> Option<Metadata> {
    Some(match name {
        b"\"process_name\"" => Metadata::Process,
        b"\"thread_name\"" => Metadata::Thread,
        b"\"process_labels\"" => Metadata::Labels,
        b"\"engine_settings\"" => Metadata::Settings,
        b"\"process_sort_index\"" | b"\"thread_sort_index\"" => Metadata::Order,
        _ => return None,
    })
}

/// Returns the `otherData` of a trace without the names of hosts, files and runs.
fn other_data(head: &[u8]) -> Value {
    let head = [head.trim_ascii_end(), b"]}"].concat();
    let head: Value = serde_json::from_slice(&head).unwrap_or_default();
    let data = head["otherData"].as_object().into_iter().flatten();
    let is_count = |value: &Value| value.is_number() || value.is_null();
    let public = data.filter(|(key, value)| match value {
        Value::String(text) => matches!(key.as_str(), "tool" | "version") && is_word(text),
        Value::Object(counts) => counts.values().all(is_count),
        value => is_count(value),
    });
    let members = public.map(|(key, value)| (key.clone(), value.clone()));
    json!(serde_json::Map::from_iter(members))
}

/// Returns a JSON value unchanged if it is a number of at most [`MOST_DIGITS`] bytes, true, false or null. Otherwise
/// returns `None`.
fn number(value: &[u8]) -> Option<Cow<'_, [u8]>> {
    let is_kept = !matches!(value.first()?, b'"' | b'[' | b'{') && value.len() <= MOST_DIGITS;
    is_kept.then_some(Cow::from(value))
}

/// Decodes a JSON string, or returns `None` if the value is not a valid string.
fn text(value: &[u8]) -> Option<Cow<'_, str>> {
    let plain = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    match plain.contains(&b'\\') {
        false => std::str::from_utf8(plain).ok().map(Cow::from),
        true => serde_json::from_slice(value).ok().map(Cow::Owned),
    }
}

/// Encodes a text as a JSON string. The result is never `None`.
fn json_text<'a>(text: &str) -> Option<Cow<'a, [u8]>> {
    serde_json::to_vec(text).ok().map(Cow::from)
}
