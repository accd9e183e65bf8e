//! Decides which texts of a trace may leave the machine, and shortens the others.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

/// Words that recorders and merges write into process names and labels.
#[rustfmt::skip]
const WORDS: [&str; 32] = [
    "·", "±", "fork", "host", "tracks", "Ascend", "Hardware", "CANN",
    "CPU", "NPU", "GPU", "TPU", "XPU", "HPU", "MTIA", "MLU", "MUSA", "GCU", "DCU", "IPU", "AIU",
    "killed", "by", "with", "exit", "code", "ring", "in", "memory", "clock", "any", "time",
];
/// Prefix of the name of a device in XLA traces, before its kind and number.
const XLA: &str = "/device:";
/// Maximum length of a kept word in bytes.
const MOST_BYTES: usize = 40;
/// Maximum number of characters of a name of code. Longer names may be prompts.
const MOST_CHARS: usize = 120;
/// Last path components of well-known HTTP routes. Any other last component may be the name of a user or a file.
const ROUTES: [&str; 8] = [
    "chat",
    "completions",
    "embeddings",
    "generate",
    "health",
    "messages",
    "metrics",
    "models",
];
/// Prefix of many API keys.
const KEY: &str = "sk-";
/// Suffixes of script names, which the user chose.
const SCRIPTS: [&str; 2] = [".py", ".sh"];
/// Minimum length in bytes of a word that looks like a key if it also has [`KEY_DIGITS`] digits.
const KEY_BYTES: usize = 20;
const KEY_DIGITS: usize = 4;

/// Returns true if the text is one short word, such as `float16`, `stop` or `0.11.0`.
pub(super) fn is_word(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.+-".contains(&byte);
    let is_short = !text.is_empty() && text.len() <= MOST_BYTES;
    is_short && text.bytes().all(is_plain) && !is_key(text)
}

/// Returns true if the word looks like an API key.
fn is_key(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let is_long = word.len() >= KEY_BYTES && digits >= KEY_DIGITS;
    word.starts_with(KEY) || is_long && !word.contains(['.', ':'])
}

/// Returns true if the text consists only of numbers and of words that recorders and merges write.
pub(super) fn is_ours(text: &str) -> bool {
    text.split_whitespace().all(is_known)
}

fn is_known(word: &str) -> bool {
    let number = word.trim_start_matches(['[', '±']).trim_end_matches(']');
    let is_signal = || {
        let signal = word.strip_prefix("SIG");
        signal.is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_uppercase()))
    };
    let is_number = || !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    WORDS.contains(&word) || word == "ns" || is_number() || is_signal()
}

/// Returns a name of code without its paths. A path that ends in a file or a well-known route is cut to that last part.
/// Addresses, keys and other paths are replaced by an ellipsis, and long names are cut.
pub(super) fn code_name(name: &str) -> String {
    let words = name.split(' ').map(|word| {
        let word = word.split_once('?').map_or(word, |(path, _)| path);
        let bare = word.trim_matches(|letter: char| !letter.is_ascii_alphanumeric());
        let is_address = bare.parse::<SocketAddr>().is_ok() || bare.parse::<IpAddr>().is_ok();
        match is_address || word.contains("://") || bare.starts_with(KEY) {
            true => "…",
            false => word,
        }
    });
    let name = words.collect::<Vec<_>>().join(" ");
    let name: String = without_path(name).chars().take(MOST_CHARS).collect();
    name
}

/// Returns the name without the path in it.
fn without_path(name: String) -> String {
    // A path may contain spaces, so everything between the first and the last separator belongs to it.
    let separators = ['/', '\\'];
    let Some((first, last)) = name.find(separators).zip(name.rfind(separators)) else {
        return name;
    };
    let is_before = |letter: char| letter.is_whitespace() || "([{<\"'`=,;|".contains(letter);
    let start = name[..first].rfind(is_before);
    let start = start.map_or(0, |at| {
        at + name[at..].chars().next().map_or(1, char::len_utf8)
    });
    let rest = &name[last + 1..];
    let is_kept = rest.contains('.') || rest.contains("::") || ROUTES.contains(&rest);
    format!("{}{}", &name[..start], if is_kept { rest } else { "…" })
}

/// Returns the name of a process without paths, arguments and values: its first word, and later words that recorders
/// and merges write. A merge appends the host or file to processes with the same name; that is left out too.
pub(super) fn role(name: &str) -> String {
    if let Some(at) = name.find(XLA) {
        let is_part = |letter: &char| letter.is_ascii_alphanumeric() || *letter == ':';
        let device = name[at + XLA.len()..].chars().take_while(is_part);
        return format!("{XLA}{}", device.collect::<String>());
    }
    let mut has_name = false;
    let segments = name.split(" · ").filter_map(|segment| {
        if is_ours(segment) {
            return Some(segment.to_owned());
        }
        if std::mem::replace(&mut has_name, true) {
            return None;
        }
        let name = code_name(segment);
        let mut words = name.split_whitespace();
        let first = words.next().unwrap_or_default();
        let is_part = |letter: &char| letter.is_alphanumeric() || "_.:-()[]<>+…".contains(*letter);
        let first: String = first.chars().take_while(is_part).take(MOST_BYTES).collect();
        let first = match is_key(&first) {
            true => "…".to_owned(),
            false if SCRIPTS.iter().any(|end| first.ends_with(end)) => "script".to_owned(),
            false => first,
        };
        let kept = words.filter(|word| is_known(word)).map(str::to_owned);
        let words = [first].into_iter().chain(kept);
        Some(words.collect::<Vec<_>>().join(" "))
    });
    segments.collect::<Vec<_>>().join(" · ")
}

/// Pseudonyms such as `r1` and `r2`. The same text always gets the same pseudonym.
#[derive(Debug)]
pub(super) struct Pseudonyms {
    prefix: &'static str,
    numbers: HashMap<String, usize>,
}

impl Pseudonyms {
    /// Creates pseudonyms that begin with `prefix`.
    pub(super) fn new(prefix: &'static str) -> Pseudonyms {
        Pseudonyms {
            prefix,
            numbers: HashMap::new(),
        }
    }

    /// Returns the pseudonym that replaces a text: the prefix and a number. Equal texts get the same pseudonym.
    pub(super) fn name(&mut self, text: &str) -> String {
        let next = self.numbers.len() + 1;
        let number = match self.numbers.get(text) {
            Some(number) => *number,
            None => *self.numbers.entry(text.to_owned()).or_insert(next),
        };
        format!("{}{number}", self.prefix)
    }

    /// Returns the number of different texts that got a pseudonym.
    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_paths_and_addresses() {
        for (name, kept) in [
            ("aten::matmul", "aten::matmul"),
            ("load /home/alice/my models/x.bin", "load x.bin"),
            ("run (/home/alice/app.py:12)", "run (app.py:12)"),
            (r"C:\Users\alice\app.py", "app.py"),
            ("GET /v1/chat?key=sk-1", "GET chat"),
            ("send tcp://10.0.0.3:5555 now", "send … now"),
            ("zeit=/ä/b", "zeit=…"),
            ("chat?key=AAA/sk-1", "chat"),
            ("GET /v1/users/alice", "GET …"),
            ("recv 10.1.2.3:5555", "recv …"),
        ] {
            assert_eq!(code_name(name), kept);
        }
    }

    #[test]
    fn names_of_processes_lose_their_arguments() {
        for (name, kept) in [
            ("VLLM::EngineCore_DP0", "VLLM::EngineCore_DP0"),
            ("/home/alice/bin/serve --api-key sk-1 /x", "…"),
            ("EngineCore · alice-laptop.corp", "EngineCore"),
            ("sk-live-4242 x", "…"),
            ("alice.py", "script"),
            ("python3 serve.py --api-key sk-1", "python3"),
            ("KEY=sk-1 serve", "KEY"),
            ("worker-0 fork 4711", "worker-0 fork 4711"),
            (
                "worker · Ascend Hardware NPU 3",
                "worker · Ascend Hardware NPU 3",
            ),
            ("/job:alice/device:TPU:0 (x)", "/device:TPU:0"),
        ] {
            assert_eq!(role(name), kept);
        }
    }

    #[test]
    fn a_text_keeps_its_pseudonym() {
        let mut names = Pseudonyms::new("r");
        assert_eq!(
            [names.name("a"), names.name("b"), names.name("a")],
            ["r1", "r2", "r1"]
        );
    }
}
