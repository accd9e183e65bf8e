//! Sizes as people write them: `900MB`, `1.5GB`, `512MiB`, `900M`.

/// Units in lower case and their bytes. Units with `B` are decimal, and those without it or with `iB` are binary, as in `split` and `dd`.
const UNITS: [(&str, u64); 9] = [
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("k", 1 << 10),
    ("m", 1 << 20),
    ("g", 1 << 30),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
];

/// Parses a positive size: a number and its unit.
///
/// # Errors
/// Returns a message if the text has another form, is zero, or exceeds 4 EiB.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let bytes = size_bytes(text.trim()).filter(|bytes| *bytes > 0);
    bytes.ok_or_else(|| format!("expected a size such as 900MB or 1.5GiB, found {text:?}"))
}

fn size_bytes(text: &str) -> Option<u64> {
    amount(&text.to_ascii_lowercase(), &UNITS).map(|(bytes, _)| bytes)
}

/// Parses a number, which may have decimals, and one of these units. Returns the amount in the smallest unit, and true if no fraction was cut off.
pub(crate) fn amount(text: &str, units: &[(&str, u64)]) -> Option<(u64, bool)> {
    let is_number = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    let (number, unit) = text.split_at(text.bytes().take_while(is_number).count());
    let (_, unit) = *units.iter().find(|(name, _)| *name == unit)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let whole = whole.parse::<u64>().ok()?.checked_mul(unit)?;
    let scale = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let part = fraction.parse::<u128>().ok()?.checked_mul(unit.into())?;
    let all = whole.checked_add(u64::try_from(part / scale).ok()?)?;
    (all <= u64::MAX / 4).then_some((all, part % scale == 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_a_unit() {
        // Sizes and their bytes.
        for case in include_str!("../tests/sizes.txt").lines() {
            let (text, bytes) = case.split_once('=').unwrap();
            assert_eq!(parse_size(text), Ok(bytes.parse().unwrap()), "{text}");
        }
        for text in "|MB|900|-1MB|1.MB|.5GB|0.0001kb|9TB|1e3MB|9999999999GB".split('|') {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
