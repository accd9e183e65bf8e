//! A minimal tokenizer, which encodes words as tokens and decodes tokens as syllables.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::protocol::Token;

/// Number of different tokens.
pub(crate) const VOCABULARY: Token = 512;

const ONSETS: [&str; 16] = [
    "b", "ch", "d", "f", "g", "h", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z",
];
const RHYMES: [&str; 32] = [
    "a", "an", "ar", "as", "e", "el", "en", "er", "es", "i", "il", "in", "ir", "is", "o", "ol",
    "on", "or", "os", "u", "ul", "un", "ur", "us", "ai", "au", "ei", "ia", "io", "oa", "ou", "ui",
];

/// Returns the tokens of `text`, one for each word.
pub(crate) fn encode(text: &str) -> Vec<Token> {
    text.split_whitespace().map(token_of_word).collect()
}

/// Returns the syllable of a token, with a space before it.
pub(crate) fn decode(token: Token) -> String {
    let index = (token % VOCABULARY) as usize;
    let (onset, rhyme) = (index / RHYMES.len(), index % RHYMES.len());
    format!(" {}{}", ONSETS[onset], RHYMES[rhyme])
}

fn token_of_word(word: &str) -> Token {
    let mut hasher = DefaultHasher::new();
    word.hash(&mut hasher);
    Token::try_from(hasher.finish() % u64::from(VOCABULARY)).unwrap_or(0)
}
