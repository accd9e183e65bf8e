//! Text and digits eight or sixteen bytes at a time.

#[cfg(target_arch = "x86_64")]
mod vector;

#[cfg(target_arch = "x86_64")]
pub use vector::plain_len;

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;
const POWERS: [u64; 8] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];

/// The eight bytes from `at` on, the first one lowest; zeros stand for what is not there.
#[inline(always)]
pub fn eight(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        Some(eight) => u64::from_le_bytes(*eight),
        None => last(bytes, at),
    }
}

/// What is left of the bytes, fewer than eight. A copy of unknown length would be a call; a shift is not.
#[inline]
fn last(bytes: &[u8], at: usize) -> u64 {
    let left = bytes.get(at..).unwrap_or_default();
    match bytes.last_chunk::<8>() {
        Some(eight) if !left.is_empty() => u64::from_le_bytes(*eight) >> (8 * (8 - left.len())),
        _ => left
            .iter()
            .rev()
            .fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

/// Two words, of the sixteen bytes from `at` on.
#[inline(always)]
pub fn sixteen(bytes: &[u8], at: usize) -> [u64; 2] {
    [eight(bytes, at), eight(bytes, at + 8)]
}

/// How many bytes stand before the first quote, backslash or control character; 16 if there is none.
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

/// Marks quotes, backslashes and control characters in their highest bits; behind the first one others may be marked too.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn marks(word: u64) -> u64 {
    let quote = word ^ (ONES * 0x22);
    let escape = word ^ (ONES * 0x5c);
    let found = (quote.wrapping_sub(ONES) & !quote)
        | (escape.wrapping_sub(ONES) & !escape)
        | (word.wrapping_sub(ONES * 0x20) & !word);
    // A borrow or carry can only make a byte after the first one look found.
    found & HIGHS
}

/// How many bytes are digits before the first that is none; 8 if all are.
#[inline(always)]
pub fn digits_len(word: u64) -> usize {
    let values = word ^ (ONES * 0x30);
    let found = values.wrapping_add(ONES * 0x76) | values;
    ((found & HIGHS).trailing_zeros() / 8) as usize
}

/// The value of the first `len` bytes, all of them digits.
#[inline(always)]
fn value(word: u64, len: usize) -> u64 {
    // The first digit is the lowest byte: what is shifted in from below are leading zeros.
    // In two steps, for 64 bits at once are no shift.
    let half = 32 - 4 * len;
    let digits = (word ^ (ONES * 0x30)) << half << half;
    let pairs = (digits.wrapping_mul(1 + (10 << 8)) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(1 + (100 << 16)) >> 16) & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(1 + (10_000 << 32)) >> 32
}

/// Reads 1 to 15 digits at `at`; gives their value and how many they are.
#[inline(always)]
pub fn digits(bytes: &[u8], at: usize) -> Option<(i64, usize)> {
    let word = eight(bytes, at);
    let mut len = digits_len(word);
    let mut number = value(word, len);
    if len == 8 {
        let word = eight(bytes, at + 8);
        let more = digits_len(word);
        number = number * POWERS.get(more)? + value(word, more);
        len += more;
    }
    (len > 0).then_some((number.cast_signed(), len))
}

/// The decimal digits of a number of at most 16, and how many they are; what comes after them is no text.
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

/// The values of the eight digits of a number, the first one lowest.
#[inline(always)]
fn eight_digits(number: u64) -> u64 {
    let fours = (number / 10_000) | ((number % 10_000) << 32);
    // Multiplied and shifted: divided by 100, then by 10, each part by itself.
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let pairs = hundreds | ((fours - hundreds * 100) << 16);
    let tens = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | ((pairs - tens * 10) << 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_first_byte_of_every_value_at_every_place() {
        for byte in 0..=255u8 {
            for place in 0..16 {
                let mut text = *b"aaaaaaaaaaaaaaaa";
                text[place] = byte;
                let is_plain = byte >= 0x20 && byte != b'"' && byte != b'\\';
                let expected = if is_plain { 16 } else { place };
                assert_eq!(plain_len(sixteen(&text, 0)), expected, "{byte} at {place}");
            }
            for place in 0..8 {
                let mut text = *b"77777777";
                text[place] = byte;
                let expected = if byte.is_ascii_digit() { 8 } else { place };
                assert_eq!(digits_len(eight(&text, 0)), expected, "{byte} at {place}");
            }
        }
    }

    #[test]
    fn nothing_is_read_behind_the_end() {
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
