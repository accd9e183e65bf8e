//! Flattens the args of an event as Perfetto does: each value that is not an object or a list becomes an arg.

use super::entry::{ArgValue, begin_args, write_arg};
use super::texts::{TextPair, Texts, UNNUMBERED};
use parquet::data_type::ByteArray;
use std::collections::HashMap;
use trace_merge::json::{MAX_DEPTH, Scanner};
use trace_store::hashed_map::HashedMap;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Prefix of all keys.
const ROOT: &str = "args";
/// Maximum number of args for which repeated keys are found by a linear search.
const FEW: usize = 16;
/// Maximum number of digits with which a number certainly fits 64 bits.
const MAX_DIGITS: usize = 18;

/// Path to a value.
#[derive(Clone, Copy)]
enum Path<'a> {
    Root,
    /// A member with its key as written in JSON.
    Member(&'a Path<'a>, &'a [u8]),
    Element(&'a Path<'a>, usize),
}

impl Path<'_> {
    /// Returns the number of objects and lists around the value, including the event and its args.
    fn depth(&self) -> u32 {
        let mut depth = 2;
        let mut path = self;
        while let Path::Member(parent, _) | Path::Element(parent, _) = path {
            (path, depth) = (parent, depth + 1);
        }
        depth
    }

    /// Returns both forms of the key: without list indices, and with them.
    fn pair(&self) -> TextPair {
        let (mut flat, mut key) = (String::new(), String::new());
        self.append(&mut flat, &mut key);
        TextPair(
            Some(ByteArray::from(flat.into_bytes())),
            ByteArray::from(key.into_bytes()),
        )
    }

    fn append(&self, flat: &mut String, key: &mut String) {
        match self {
            Path::Root => [flat, key].into_iter().for_each(|to| to.push_str(ROOT)),
            Path::Member(parent, name) => {
                parent.append(flat, key);
                let name = unescaped(name);
                let name = String::from_utf8_lossy(&name);
                for to in [flat, key] {
                    to.push('.');
                    to.push_str(&name);
                }
            }
            Path::Element(parent, number) => {
                parent.append(flat, key);
                key.push_str(&format!("[{number}]"));
            }
        }
    }
}

/// An arg that was found.
struct Found {
    key: u32,
    hash: u64,
    value: Value,
}

/// Range of a text in the args, or in the unescaped texts.
#[derive(Clone, Copy)]
enum TextRange {
    Plain(usize, usize),
    Unescaped(usize, usize),
}

type Value = ArgValue<TextRange>;

/// Flattens args. Its memory is reused for the next event.
#[derive(Default)]
pub(crate) struct ArgReader {
    /// Numbers of keys by the hash of the path to the value.
    keys: HashedMap<u32>,
    found: Vec<Found>,
    /// Keys without a number.
    unnumbered: HashMap<u64, TextPair>,
    unescaped: Vec<u8>,
}

impl ArgReader {
    /// Returns the capacity of the largest buffer or map.
    pub(crate) fn capacity(&self) -> usize {
        let for_event = self.found.capacity().max(self.unescaped.capacity());
        for_event.max(self.keys.len())
    }

    /// Writes the args after an entry. If a key is repeated, the last value counts. `args` may be followed by the rest of the line, which is ignored.
    pub(crate) fn write(&mut self, args: &[u8], keys: &Texts, entry: usize, out: &mut Vec<u8>) {
        self.found.clear();
        self.unescaped.clear();
        self.unnumbered.clear();
        let mut scanner = Scanner::lenient(args, 0);
        scanner.space();
        // Malformed args count as none.
        if scanner.peek() != b'{' || self.members(&mut scanner, Path::Root, 0, keys).is_none() {
            self.found.clear();
        }
        self.remove_repeated();
        begin_args(out, entry, self.found.len());
        for arg in &self.found {
            let value = arg.value.with_text(|range| match range {
                TextRange::Plain(start, end) => &args[start..end],
                TextRange::Unescaped(start, end) => &self.unescaped[start..end],
            });
            let pair = || self.unnumbered[&arg.hash].clone();
            write_arg(out, arg.key, pair, value);
        }
    }

    /// Reads the members of an object, or the elements of a list.
    fn members(
        &mut self,
        scanner: &mut Scanner<'_>,
        parent: Path<'_>,
        hash: u64,
        keys: &Texts,
    ) -> Option<()> {
        let is_object = scanner.peek() == b'{';
        let end = if is_object { b'}' } else { b']' };
        scanner.at += 1;
        scanner.space();
        if scanner.peek() == end {
            scanner.at += 1;
            return Some(());
        }
        let mut number = 0_usize;
        loop {
            let (path, hash) = if is_object {
                let start = scanner.at + 1;
                scanner.string()?;
                let key = &scanner.bytes[start..scanner.at - 1];
                scanner.space();
                scanner.expect(b':')?;
                scanner.space();
                (Path::Member(&parent, key), xxh3_64_with_seed(key, hash))
            } else {
                let hash = hash.rotate_left(32) ^ xxh3_64(&number.to_le_bytes());
                (Path::Element(&parent, number), hash)
            };
            self.value(scanner, path, hash, keys)?;
            number += 1;
            scanner.space();
            if scanner.peek() != b',' {
                return scanner.expect(end);
            }
            scanner.at += 1;
            scanner.space();
        }
    }

    fn value(
        &mut self,
        scanner: &mut Scanner<'_>,
        path: Path<'_>,
        hash: u64,
        keys: &Texts,
    ) -> Option<()> {
        let start = scanner.at;
        let value = match scanner.peek() {
            // If a checksum covers the line, nobody has checked the depth of its args before.
            b'{' | b'[' if path.depth() > MAX_DEPTH => return None,
            b'{' | b'[' => return self.members(scanner, path, hash, keys),
            b'"' => {
                scanner.string()?;
                self.text(scanner.bytes, start + 1, scanner.at - 1)
            }
            first => match whole(&scanner.bytes[start..]) {
                Some((value, len)) => {
                    scanner.at += len;
                    Value::Int(value)
                }
                None => {
                    scanner.value(0)?;
                    match first {
                        b'n' => return Some(()),
                        b't' => Value::Bool(true),
                        b'f' => Value::Bool(false),
                        _ => number(scanner.bytes, start, scanner.at),
                    }
                }
            },
        };
        let key = *self
            .keys
            .entry(hash)
            .or_insert_with(|| keys.number(hash, || path.pair()));
        if key == UNNUMBERED {
            self.unnumbered.entry(hash).or_insert_with(|| path.pair());
        }
        self.found.push(Found { key, hash, value });
        Some(())
    }

    fn text(&mut self, args: &[u8], start: usize, end: usize) -> Value {
        let text = &args[start..end];
        if memchr::memchr(b'\\', text).is_none() {
            return Value::Text(TextRange::Plain(start, end));
        }
        let start = self.unescaped.len();
        self.unescaped.extend_from_slice(&unescaped(text));
        Value::Text(TextRange::Unescaped(start, self.unescaped.len()))
    }

    /// Keeps only the last value of each key, at the position of the first.
    fn remove_repeated(&mut self) {
        let found = &mut self.found;
        if found.len() <= FEW {
            let mut at = 1;
            while at < found.len() {
                let hash = found[at].hash;
                match found[..at].iter().position(|arg| arg.hash == hash) {
                    Some(first) => {
                        found[first] = found.remove(at);
                    }
                    None => at += 1,
                }
            }
            return;
        }
        let mut positions = HashedMap::default();
        let mut kept = 0;
        for at in 0..found.len() {
            let position = *positions.entry(found[at].hash).or_insert(kept);
            found.swap(position, at);
            kept += usize::from(position == kept);
        }
        found.truncate(kept);
    }
}

/// Parses a whole number of at most 18 digits at the beginning of the text. Returns it and its length. Most numbers have this form, and parsing them takes less
/// time than with [`number`].
fn whole(text: &[u8]) -> Option<(i64, usize)> {
    let sign = usize::from(text.first() == Some(&b'-'));
    let (mut value, mut len) = (0_i64, sign);
    while let Some(digit @ b'0'..=b'9') = text.get(len) {
        value = value.wrapping_mul(10).wrapping_add(i64::from(digit - b'0'));
        len += 1;
    }
    let digits = len - sign;
    let is_whole = !matches!(text.get(len), Some(b'.' | b'e' | b'E'));
    let is_plain = digits == 1 || text.get(sign) != Some(&b'0');
    let value = if sign == 1 {
        value.wrapping_neg()
    } else {
        value
    };
    ((1..=MAX_DIGITS).contains(&digits) && is_whole && is_plain).then_some((value, len))
}

/// Converts any other number. If it exceeds a double, the result is its text.
fn number(args: &[u8], start: usize, end: usize) -> Value {
    let text = std::str::from_utf8(&args[start..end]).unwrap_or_default();
    if !text.contains('.')
        && let Ok(value) = text.parse()
    {
        return Value::Int(value);
    }
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Value::Real(value),
        _ => Value::Text(TextRange::Plain(start, end)),
    }
}

/// Decodes the escapes of a JSON string, which is given without its quotes.
pub(super) fn unescaped(text: &[u8]) -> Vec<u8> {
    if memchr::memchr(b'\\', text).is_none() {
        return text.to_vec();
    }
    let quoted = [b"\"", text, b"\""].concat();
    serde_json::from_slice::<String>(&quoted).map_or_else(|_| text.to_vec(), String::into_bytes)
}

#[cfg(test)]
mod tests {
    use super::super::entry::{ArgKey, Entry, write_entry};
    use super::*;

    fn args(json: &str) -> Vec<String> {
        let (texts, mut out) = (Texts::default(), Vec::new());
        let mut reader = ArgReader::default();
        for _ in 0..2 {
            out.clear();
            let entry = write_entry(&mut out, None, None, None);
            reader.write(json.as_bytes(), &texts, entry, &mut out);
        }
        let pairs = texts.into_pairs();
        let mut found = Vec::new();
        Entry::read(&out).each_arg(|key, value| {
            let ArgKey::Number(number) = key else {
                panic!("{key:?}")
            };
            let TextPair(flat, key) = &pairs[number as usize];
            let [flat, key] =
                [flat.as_ref().unwrap(), key].map(|text| text.as_utf8().unwrap().to_owned());
            let flat = if flat == key { "=".to_owned() } else { flat };
            let value = match value {
                ArgValue::Int(value) => format!("{value}"),
                ArgValue::Bool(value) => format!("{value}"),
                ArgValue::Real(value) => format!("{value:?}"),
                ArgValue::Text(text) => format!("{:?}", std::str::from_utf8(text).unwrap()),
            };
            found.push(format!("{flat} {key} {value}"));
        });
        found
    }

    #[test]
    fn args_are_flattened_as_in_perfetto() {
        for (json, expected) in [
            ("", ""),
            ("{}", ""),
            ("\"text\"", ""),
            (
                r#"{"a":1,"b":-2.5,"c":4.0,"d":true,"e":false,"f":null,"g":""}"#,
                r#"= args.a 1, = args.b -2.5, = args.c 4.0, = args.d true, = args.e false, = args.g """#,
            ),
            (
                r#"{ "l" : [ 1, "b", [2,3], {"q":1} ], "o":{"p":{"r":"z"}}, "n":[], "m":{}}"#,
                r#"args.l args.l[0] 1, args.l args.l[1] "b", args.l args.l[2][0] 2, args.l args.l[2][1] 3, args.l.q args.l[3].q 1, = args.o.p.r "z""#,
            ),
            (
                r#"{"d":1,"e":5,"d":2,"o":{"x":1},"o":{"x":2,"y":3}}"#,
                "= args.d 2, = args.e 5, = args.o.x 2, = args.o.y 3",
            ),
            (
                r#"{"y":-999999999999999999,"z":-0,"i":9223372036854775807,"j":-9223372036854775808}"#,
                "= args.y -999999999999999999, = args.z 0, = args.i 9223372036854775807, = args.j -9223372036854775808",
            ),
            (
                r#"{"u":18446744073709551615,"h":1e999,"n":NaN,"e":1e3,"":3}"#,
                r#"= args.u 1.8446744073709552e19, = args.h "1e999", = args.n "NaN", = args.e 1000.0, = args. 3"#,
            ),
            (r#"{"k\"q":"a\"b\u00e9\n","é":"é","torn":"#, ""),
            (r#"{"a" 1}"#, ""),
            (r#"{"a":1,"b":01,"c":2}"#, ""),
            (r#"{"a":1,"b":-,"c":2}"#, ""),
            (r#"{"a":1,"b":2x,"c":2}"#, ""),
            (r#"{"a":1 "b":2}"#, ""),
            (r#"{"a":1,}"#, ""),
            (r#"{"a":[1,]}"#, ""),
            (
                r#"{"k\"q":"a\"b\u00e9\n","é":"é"}"#,
                r#"= args.k"q "a\"bé\n", = args.é "é""#,
            ),
            (r#"{"a":1},"args":{"b":2}}"#, "= args.a 1"),
        ] {
            assert_eq!(args(json).join(", "), expected, "{json}");
        }
        // The object of the event counts for the depth, too.
        for (lists, has_args) in [(125, true), (126, false)] {
            let deep = format!("{{\"a\":{}1{}}}", "[".repeat(lists), "]".repeat(lists));
            assert_eq!(args(&deep).len(), usize::from(has_args), "{lists}");
        }
        let many: Vec<String> = (0..40).map(|n| format!("\"k{}\":{n}", n % 30)).collect();
        let found = args(&format!("{{{}}}", many.join(",")));
        let last = |n: i32| if n < 10 { n + 30 } else { n };
        let expected = (0..30).map(|n| format!("= args.k{n} {}", last(n)));
        let expected: Vec<String> = expected.collect();
        assert_eq!(found, expected);
    }
}
