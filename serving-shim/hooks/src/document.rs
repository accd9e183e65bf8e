//! A YAML document as a tree whose nodes know their lines. Scalars stay texts, so the version `0.10` does not become the number 0.1.

use saphyr_parser::{Event, Parser, ScalarStyle};

/// Maximum nesting of a document. Files of hooks need 6.
const MAX_DEPTH: usize = 16;
/// Maximum length of a message in characters. It quotes values, and the file may be any text.
const MAX_CHARS: usize = 240;

/// A mistake in a file, with its line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) line: usize,
    pub(crate) text: String,
}

impl Problem {
    pub(crate) fn new(line: usize, text: impl Into<String>) -> Problem {
        let mut text = text.into();
        if let Some((end, _)) = text.char_indices().nth(MAX_CHARS) {
            text.replace_range(end.., "…");
        }
        Problem { line, text }
    }
}

/// A value of a document.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) line: usize,
    pub(crate) value: Value,
}

#[derive(Debug)]
pub(crate) enum Value {
    /// An empty value, or `null`.
    Nothing,
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

/// A key of a mapping.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) line: usize,
    pub(crate) text: String,
}

impl Node {
    /// Describes the kind of value for a message.
    pub(crate) fn kind(&self) -> String {
        match &self.value {
            Value::Nothing => "nothing".to_owned(),
            Value::Text(text) => format!("`{text}`"),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "a mapping".to_owned(),
        }
    }
}

/// Parses the only document of a text. An empty text has the value [`Value::Nothing`].
pub(crate) fn parse(text: &str) -> Result<Node, Problem> {
    let mut builder = Builder::default();
    let last_line = text.lines().count().max(1);
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let problem = format!("not YAML: {}", error.info());
            // The parser places the end of the text in a line of its own.
            Problem::new(error.marker().line().min(last_line), problem)
        })?;
        builder.add(event, span.start.line())?;
    }
    Ok(builder.root.unwrap_or(Node {
        line: 1,
        value: Value::Nothing,
    }))
}

/// Builds the tree from the parser's events.
#[derive(Default)]
struct Builder {
    root: Option<Node>,
    /// The lists and mappings that are not complete, outermost first, each mapping with the key whose value comes next.
    open: Vec<(Node, Option<Key>)>,
}

impl Builder {
    fn add(&mut self, event: Event<'_>, line: usize) -> Result<(), Problem> {
        match event {
            Event::SequenceStart(..) => self.open(Value::List(Vec::new()), line),
            Event::MappingStart(..) => self.open(Value::Map(Vec::new()), line),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some((node, _)) => self.complete(node),
                None => Ok(()),
            },
            Event::Scalar(text, style, ..) => {
                let is_nothing = style == ScalarStyle::Plain
                    && matches!(text.as_ref(), "" | "~" | "null" | "Null" | "NULL");
                let value = if is_nothing {
                    Value::Nothing
                } else {
                    Value::Text(text.into_owned())
                };
                self.complete(Node { line, value })
            }
            Event::Alias(_) => Err(Problem::new(line, "aliases (`*name`) are not supported")),
            _ => Ok(()),
        }
    }

    fn open(&mut self, value: Value, line: usize) -> Result<(), Problem> {
        if self.open.len() == MAX_DEPTH {
            let problem = format!("expected at most {MAX_DEPTH} values inside each other");
            return Err(Problem::new(line, problem));
        }
        self.open.push((Node { line, value }, None));
        Ok(())
    }

    /// Adds a complete value to the innermost open list or mapping.
    fn complete(&mut self, node: Node) -> Result<(), Problem> {
        let Some((parent, key)) = self.open.last_mut() else {
            if self.root.is_some() {
                return Err(Problem::new(node.line, "expected one document, found two"));
            }
            self.root = Some(node);
            return Ok(());
        };
        match (&mut parent.value, key.take()) {
            (Value::Map(members), Some(key)) => members.push((key, node)),
            (Value::Map(members), None) => *key = Some(new_key(members, node)?),
            (Value::List(items), _) => items.push(node),
            (Value::Nothing | Value::Text(_), _) => {}
        }
        Ok(())
    }
}

fn new_key(members: &[(Key, Node)], node: Node) -> Result<Key, Problem> {
    let line = node.line;
    let Value::Text(text) = node.value else {
        let problem = format!("expected a text as key, found {}", node.kind());
        return Err(Problem::new(line, problem));
    };
    match members.iter().find(|(key, _)| key.text == text) {
        Some((key, _)) => {
            let problem = format!("`{text}` is already in line {}", key.line);
            Err(Problem::new(line, problem))
        }
        None => Ok(Key { line, text }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_lines_and_stay_texts() {
        let root = parse("# a\na:\n  - 0.10\n  - {b: ~}\n").unwrap();
        let Value::Map(members) = &root.value else {
            panic!("{root:?}")
        };
        let (key, list) = &members[0];
        assert_eq!((key.text.as_str(), key.line, list.line), ("a", 2, 3));
        let Value::List(items) = &list.value else {
            panic!("{list:?}")
        };
        assert_eq!((items[0].kind(), items[1].line), ("`0.10`".to_owned(), 4));
    }

    #[test]
    fn a_text_that_is_no_tree_is_refused_with_its_line() {
        for (text, line, problem) in [
            ("a: [1\nb", 2, "not YAML: "),
            ("a: 1\na: 2", 2, "`a` is already in line 1"),
            ("a: &x 1\nb: *x", 2, "aliases"),
            ("---\na\n---\nb", 4, "expected one document"),
            ("? [a]\n: 1", 1, "expected a text as key, found a list"),
            (&"[".repeat(40), 1, "at most 16 values"),
        ] {
            let found = parse(text).unwrap_err();
            assert!(
                found.line == line && found.text.contains(problem),
                "{text}: {found:?}"
            );
        }
    }

    #[test]
    fn a_message_quotes_only_the_start_of_a_long_value() {
        let problem = Problem::new(1, format!("found {}", "é".repeat(1000)));
        assert_eq!(problem.text, format!("found {}…", "é".repeat(234)));
    }

    #[test]
    fn json_and_empty_texts_are_documents() {
        let root = parse("{\n\t\"hooks\": [\n\t\t{\"symbol\": \"a:b\", \"name\": null}\n\t]\n}\n");
        assert_eq!(root.unwrap().kind(), "a mapping");
        assert_eq!(parse("# nothing\n").unwrap().kind(), "nothing");
    }
}
