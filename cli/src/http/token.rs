//! The secret token that requests carry.

use crate::error::Error;
use crate::words::say;
use std::fmt;
use std::fs::File;
use std::hint::black_box;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Minimum length of a token. A shorter one could be guessed.
const LEAST: usize = 16;
/// Maximum length of a token. A longer file is assumed to be something else.
const MOST: usize = 512;

/// Number of random bytes in a generated token.
const RANDOM_BYTES: usize = 24;

/// A token. It is printed in the link that a command shows, and nowhere else.
pub(crate) struct Token(Vec<u8>);

impl Token {
    /// Creates a token that cannot be guessed.
    pub(crate) fn random() -> Result<Token, Error> {
        let source = Path::new("/dev/urandom");
        let mut bytes = [0; RANDOM_BYTES];
        let read = File::open(source).and_then(|mut file| file.read_exact(&mut bytes));
        read.map_err(|error| Error::file(source, error))?;
        let hex = bytes.iter().map(|byte| format!("{byte:02x}"));
        Ok(Token(hex.collect::<String>().into_bytes()))
    }

    /// Returns the token as a part of an address.
    pub(crate) fn in_link(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default() // it is ASCII
    }

    /// Reads a token from a file, without the white space around it.
    pub(crate) fn read(path: &Path) -> Result<Token, Error> {
        let unusable = |error| Error::file(path, error);
        let bytes = std::fs::read(path).map_err(unusable)?;
        let mode = std::fs::metadata(path).map_err(unusable)?.mode();
        if mode & 0o077 != 0 {
            say(&format!(
                "{}: others may read this token: chmod 600 it",
                path.display()
            ));
        }
        Token::parse(&bytes).ok_or_else(|| {
            Error::Unusable(format!(
                "{}: expected a token of {LEAST} to {MOST} letters, digits or -._~, found something else",
                path.display()
            ))
        })
    }

    /// Parses a token from bytes, without the white space around it.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Token> {
        let token = bytes.trim_ascii();
        // These characters need no escape in an address.
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
        let is_valid = (LEAST..=MOST).contains(&token.len()) && token.iter().all(is_plain);
        is_valid.then(|| Token(token.to_vec()))
    }

    /// Returns true if `shown` is this token. The comparison takes the same time whether or not the first bytes match.
    pub(crate) fn matches(&self, shown: &[u8]) -> bool {
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
        let token = Token::parse(b" 0123456789abcdef\n").unwrap();
        assert!(token.matches(b"0123456789abcdef"));
        for wrong in [
            "",
            "0123456789abcde",
            "0123456789abcdef0",
            "0123456789abcdeg",
            "0123456789abcdef\0",
        ] {
            assert!(!token.matches(wrong.as_bytes()), "{wrong}");
        }
        assert_eq!(format!("{token:?}"), "Token");
        let (one, other) = (Token::random().unwrap(), Token::random().unwrap());
        assert!(one.matches(one.in_link().as_bytes()) && !one.matches(other.in_link().as_bytes()));
        // It needs no escape.
        assert!(Token::parse(one.in_link().as_bytes()).is_some());
    }

    #[test]
    fn what_is_short_or_odd_is_no_token() {
        let long = "x".repeat(MOST + 1);
        for wrong in ["", "short", "0123456789 abcdef", "0123456789abcdeé", &long] {
            assert!(Token::parse(wrong.as_bytes()).is_none(), "{wrong}");
        }
    }
}
