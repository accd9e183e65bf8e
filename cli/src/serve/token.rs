//! The secret that requests carry.

use crate::error::Error;
use crate::words::say;
use std::fmt;
use std::hint::black_box;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A shorter one can be guessed.
const LEAST: usize = 16;
/// A file with more is something else.
const MOST: usize = 512;

/// A token. It is never printed.
pub(super) struct Token(Vec<u8>);

impl Token {
    /// Reads it from a file; white space around it is none of it.
    pub(super) fn read(path: &Path) -> Result<Token, Error> {
        let unusable = |error| Error::of_file(path, error);
        let bytes = std::fs::read(path).map_err(unusable)?;
        let mode = std::fs::metadata(path).map_err(unusable)?.mode();
        if mode & 0o077 != 0 {
            say(&format!(
                "{}: others may read this token: chmod 600 it",
                path.display()
            ));
        }
        Token::of(&bytes).ok_or_else(|| {
            Error::Unusable(format!(
                "{}: expected a token of {LEAST} to {MOST} letters, digits or -._~, found something else",
                path.display()
            ))
        })
    }

    fn of(bytes: &[u8]) -> Option<Token> {
        let token = bytes.trim_ascii();
        // These stand for themselves in an address.
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
        let is_one = (LEAST..=MOST).contains(&token.len()) && token.iter().all(is_plain);
        is_one.then(|| Token(token.to_vec()))
    }

    /// Whether it is this one. How long that takes does not tell how much of it is right.
    pub(super) fn is(&self, shown: &[u8]) -> bool {
        let mut differs = u8::from(shown.len() != self.0.len());
        for (at, byte) in self.0.iter().enumerate() {
            differs = black_box(differs | (byte ^ shown.get(at).copied().unwrap_or(0)));
        }
        differs == 0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Token")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_is_it() {
        let token = Token::of(b" 0123456789abcdef\n").unwrap();
        assert!(token.is(b"0123456789abcdef"));
        let wrong: [&[u8]; 5] = [
            b"",
            b"0123456789abcde",
            b"0123456789abcdef0",
            b"0123456789abcdeg",
            b"0123456789abcdef\0",
        ];
        assert!(!wrong.into_iter().any(|shown| token.is(shown)));
        assert_eq!(format!("{token:?}"), "Token");
    }

    #[test]
    fn what_is_short_or_odd_is_no_token() {
        let long = [b'x'; MOST + 1];
        let wrong: [&[u8]; 5] = [
            b"",
            b"short",
            b"0123456789 abcdef",
            "0123456789abcdeé".as_bytes(),
            &long,
        ];
        assert!(wrong.into_iter().all(|bytes| Token::of(bytes).is_none()));
    }
}
