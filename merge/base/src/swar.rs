//! Processes text and digits eight or sixteen bytes at a time (SIMD within a register).

#[cfg(target_arch = "x86_64")]
mod vector;

#[cfg(target_arch = "x86_64")]
pub use vector::plain_len;

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;
const POWERS: [u64; 8] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];

/// Reads eight bytes from `at` on, in little-endian order. Bytes beyond the end are zero.
#[inline(always)]
pub fn eight(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        Some(eight) => u64::from_le_bytes(*eight),
        None => last_bytes(bytes, at),
    }
}

/// Reads the last bytes (fewer than eight), which begin at `at`, into the low bytes of a word. The rest of the
/// word is 0. It shifts a whole word, because a copy of variable length
/// would be a function call.
#[inline]
fn last_bytes(bytes: &[u8], at: usize) -> u64 {
    let left = bytes.get(at..).unwrap_or_default();
    match bytes.last_chunk::<8>() {
        Some(eight) if !left.is_empty() => u64::from_le_bytes(*eight) >> (8 * (8 - left.len())),
        _ => left
            .iter()
            .rev()
            .fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

/// Reads sixteen bytes from `at` on, as two words.
#[inline(always)]
pub fn sixteen(bytes: &[u8], at: usize) -> [u64; 2] {
    [eight(bytes, at), eight(bytes, at + 8)]
}

/// Returns the number of bytes before the first quote, backslash or control character, or 16 if there is none.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub fn plain_len([first, second]: [u64; 2]) -> usize {
    let (first, second) = (marks(first), marks(second));
    let (word, before) = match first {
        0 => (second, 8),
        _ => (first, 0),
    };
    before + (word.trailing_zeros() / 8) as usize
}

/// Returns a word with the highest bit set in each byte that is a quote, backslash or control
/// character in `word`. After the first such byte, other bytes may be marked, too.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn marks(word: u64) -> u64 {
    let quote = word ^ (ONES * 0x22);
    let escape = word ^ (ONES * 0x5c);
    let found = (quote.wrapping_sub(ONES) & !quote)
        | (escape.wrapping_sub(ONES) & !escape)
        | (word.wrapping_sub(ONES * 0x20) & !word);
    // A borrow or carry can only mark a byte after the first match by mistake.
    found & HIGHS
}

/// Returns the number of leading bytes that are digits, at most 8.
#[inline(always)]
pub fn digits_len(word: u64) -> usize {
    let values = word ^ (ONES * 0x30);
    let found = values.wrapping_add(ONES * 0x76) | values;
    ((found & HIGHS).trailing_zeros() / 8) as usize
}

/// Returns the value of the first `len` bytes, which are digits.
#[inline(always)]
fn digits_value(word: u64, len: usize) -> u64 {
    // The first digit is in the lowest byte, so the bytes that are shifted in from below are leading zeros.
    // There are two shifts, because a shift by 64 bits at once would overflow.
    let half = 32 - 4 * len;
    let digits = (word ^ (ONES * 0x30)) << half << half;
    let pairs = (digits.wrapping_mul(1 + (10 << 8)) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(1 + (100 << 16)) >> 16) & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(1 + (10_000 << 32)) >> 32
}

/// Reads the decimal digits that begin at byte `at`. Returns their value and how many there are, or
/// `None` if there are none or more than 15.
#[inline(always)]
pub fn digits(bytes: &[u8], at: usize) -> Option<(i64, usize)> {
    let word = eight(bytes, at);
    let mut len = digits_len(word);
    let mut number = digits_value(word, len);
    if len == 8 {
        let word = eight(bytes, at + 8);
        let more = digits_len(word);
        number = number * POWERS.get(more)? + digits_value(word, more);
        len += more;
    }
    (len > 0).then_some((number.cast_signed(), len))
}

/// Writes a number of at most 16 decimal digits as text. Returns the text and its length. The bytes after it are not valid.
#[inline(always)]
pub(crate) fn text(number: u64) -> Option<([u8; 16], usize)> {
    const HALF: u64 = 100_000_000;
    if number >= HALF * HALF {
        return None;
    }
    let [first, last] = [number / HALF, number % HALF].map(|half| u128::from(eight_digits(half)));
    let digits = (last << 64) | first;
    let zeros = (digits.trailing_zeros() / 8).min(15);
    let text = (digits | u128::from_le_bytes([b'0'; 16])) >> (8 * zeros);
    Some((text.to_le_bytes(), 16 - zeros as usize))
}

/// Returns the values of the eight digits of a number, the first digit in the lowest byte.
#[inline(always)]
fn eight_digits(number: u64) -> u64 {
    let fours = (number / 10_000) | ((number % 10_000) << 32);
    // The multiplications and shifts divide each part by 100, and then by 10.
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let pairs = hundreds | ((fours - hundreds * 100) << 16);
    let tens = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | ((pairs - tens * 10) << 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_first_byte_of_every_value_at_every_position() {
        for byte in 0..=255u8 {
            for position in 0..16 {
                let mut text = *b"aaaaaaaaaaaaaaaa";
                text[position] = byte;
                let is_plain = byte >= 0x20 && byte != b'"' && byte != b'\\';
                let expected = if is_plain { 16 } else { position };
                assert_eq!(
                    plain_len(sixteen(&text, 0)),
                    expected,
                    "{byte} at {position}"
                );
            }
            for position in 0..8 {
                let mut text = *b"77777777";
                text[position] = byte;
                let expected = if byte.is_ascii_digit() { 8 } else { position };
                assert_eq!(
                    digits_len(eight(&text, 0)),
                    expected,
                    "{byte} at {position}"
                );
            }
        }
    }

    #[test]
    fn nothing_is_read_beyond_the_end() {
        for len in 0..40 {
            let text = vec![b'a'; len];
            for at in 0..len + 3 {
                let expected = len.saturating_sub(at).min(16);
                assert_eq!(plain_len(sixteen(&text, at)), expected, "{at} of {len}");
            }
        }
    }

    #[test]
    fn reads_up_to_fifteen_digits() {
        let all = "123456789012345678";
        for len in 1..=18 {
            for after in ["", ",", "}", "x", ".5"] {
                let text = format!("{}{after}", &all[..len]);
                let expected = (len <= 15).then(|| (all[..len].parse().unwrap(), len));
                assert_eq!(digits(text.as_bytes(), 0), expected, "{text}");
            }
        }
        for text in ["", "x", "-1", ".5"] {
            assert_eq!(digits(text.as_bytes(), 0), None, "{text}");
        }
    }
}
