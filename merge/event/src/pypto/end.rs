//! What stands behind the ids of a line. Where args differ from line to line, the first of them often do not.

use super::{ARGS, parse_end};
use crate::json::{Scanner, Span};
use trace_base::swar::same_len;

/// Args of which it is known where they begin.
const MARKS: usize = 8;

/// The end of a line, from behind its `tid` to its newline.
#[derive(Clone, Copy, Default)]
pub(super) struct End<'a> {
    /// Empty before there was one.
    pub(super) text: &'a [u8],
    /// Where args begin that others stand before.
    marks: [u32; MARKS],
    marked: usize,
}

impl<'a> End<'a> {
    /// Reads the first of some ends in place of this one. What both have in common is not read again.
    #[inline]
    pub(super) fn read(&mut self, ends: &'a [u8]) -> Option<()> {
        let same = same_len(self.text, ends);
        let is_same = |mark: &&u32| **mark as usize <= same;
        let marked = self.marks[..self.marked].iter().take_while(is_same).count();
        let mut end = End { marked, ..*self };
        let mut scanner = Scanner::compact(ends, 0);
        if let Some(last) = marked.checked_sub(1) {
            scanner.at = self.marks[last] as usize;
            end.members(&mut scanner)?;
        } else if let Some([b'{', b'"']) = ends.get(ARGS.len()..ARGS.len() + 2)
            && ends.starts_with(ARGS)
        {
            scanner.at = ARGS.len() + 1;
            end.members(&mut scanner)?;
        } else {
            parse_end(&mut scanner)?;
        }
        scanner.literal(b"\n")?;
        if scanner.odd_escapes {
            return None;
        }
        end.text = &ends[..scanner.at];
        *self = end;
        Some(())
    }

    /// Reads members of the args up to the end of the line.
    #[inline(always)]
    fn members(&mut self, scanner: &mut Scanner<'a, false>) -> Option<()> {
        loop {
            scanner.string()?;
            scanner.expect(b':')?;
            scanner.value(2)?;
            if scanner.expect(b',').is_none() {
                return scanner.literal(b"}}");
            }
            if let Ok(mark) = u32::try_from(scanner.at)
                && self.marked < MARKS
            {
                self.marks[self.marked] = mark;
                self.marked += 1;
            }
        }
    }

    /// Where its args are if it begins at `at`.
    #[inline(always)]
    pub(super) fn args(&self, at: usize) -> Span {
        if self.text.len() <= ARGS.len() {
            return Span::default();
        }
        Span {
            start: at + ARGS.len(),
            end: at + self.text.len() - "}\n".len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::mutate;

    const ENDS: [&[u8]; 6] = [
        br#","args":{"a":1,"b":"x","c":[1,2],"d":{"e":-1.5},"f":null,"g":true,"h":"","i":7,"j":8,"k":9,"l":"m","n":1e3}}"#,
        br#","args":{"a":1,"b":"x","c":[1,3],"d":{}}}"#,
        br#","args":{"a":2}}"#,
        br#","args":{}}"#,
        br#","args":7}"#,
        b"}",
    ];

    /// What is read of an end by itself.
    fn alone(end: &[u8]) -> Option<(usize, Span)> {
        let mut scanner = Scanner::compact(end, 0);
        let args = parse_end(&mut scanner)?;
        scanner.literal(b"\n")?;
        (!scanner.odd_escapes).then_some((scanner.at, args))
    }

    /// Mutated ends behind one another, good ones and others, have begins in common, and any number of args.
    #[test]
    fn each_end_is_read_as_if_it_were_the_only_one() {
        let (mut ends, mut good) = (Vec::new(), 0);
        mutate(&ENDS, 100_000, |end| ends.push([end, b"\n"].concat()));
        let mut last = End::default();
        for (number, end) in ends.iter().enumerate() {
            let expected = alone(end);
            let text = String::from_utf8_lossy(end);
            if number % 3 == 0 {
                let _ = last.read(&ends[number % 1000]);
            }
            assert_eq!(last.read(end).is_some(), expected.is_some(), "{text}");
            if let Some((len, args)) = expected {
                let args_found = last.args(0);
                assert_eq!((last.text.len(), args_found), (len, args), "{text}");
                good += 1;
            }
        }
        assert!(good > 5_000, "{good} good ones");
    }

    #[test]
    fn the_begins_of_args_are_kept() {
        let lines = ENDS.map(|end| [end, b"\n"].concat());
        let mut end = End::default();
        let marked = lines.each_ref().map(|line| {
            end.read(line).unwrap();
            end.marked
        });
        assert_eq!(marked, [MARKS, 3, 0, 0, 0, 0]);
        assert_eq!(end.read(b",\"args\":{}} "), None);
        assert_eq!(end.text, b"}\n");
    }
}
