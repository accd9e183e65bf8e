//! A kernel's name, as it is registered and as it is shown.

/// Minimum number of hexadecimal digits in a hash.
const HASH_DIGITS: usize = 16;

/// A kernel's name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct KernelName {
    /// Name under which the kernel is registered.
    pub(crate) raw: String,
    shown_bytes: usize,
}

impl KernelName {
    /// The empty name.
    pub(crate) const EMPTY: KernelName = KernelName {
        raw: String::new(),
        shown_bytes: 0,
    };

    /// Creates a kernel's name from the text under which the kernel is registered.
    pub(crate) fn new(raw: String) -> KernelName {
        let shown_bytes = shown(&raw).len();
        KernelName { raw, shown_bytes }
    }

    /// Returns the kernel's name without the hash of the compiled binary and everything after it.
    pub(crate) fn shown(&self) -> &str {
        self.raw.get(..self.shown_bytes).unwrap_or(&self.raw)
    }
}

/// Returns the part of a kernel's registered name before its hash: `MatMulV2` for `MatMulV2_8f9d…_1_mix_aic`. A name that begins with a hash is returned
/// unchanged.
pub(crate) fn shown(raw: &str) -> &str {
    let mut at = 0usize;
    for part in raw.split('_') {
        let end = at.saturating_sub(1);
        let prefix = raw[..end].trim_end_matches('_');
        if !prefix.is_empty() && is_hash(part) {
            return prefix;
        }
        at += part.len() + 1;
    }
    raw
}

fn is_hash(part: &str) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    part.len() >= HASH_DIGITS && part.bytes().all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_names_table() {
        let mat_mul = "MatMulV2_8f9d3c5e7a1b2d4f6081a2b3c4d5e6f7_1_mix_aic";
        for (raw, expected) in [
            (mat_mul, "MatMulV2"),
            ("te_gatherv2_65afb9c2d1e0f3a4_1__kernel0", "te_gatherv2"),
            ("Add__0123456789abcdef", "Add"),
            ("plain_kernel", "plain_kernel"),
            ("Op_0123456789abcde", "Op_0123456789abcde"),
            ("0123456789abcdef0123_1", "0123456789abcdef0123_1"),
            ("_0123456789abcdef", "_0123456789abcdef"),
            ("__0123456789abcdef", "__0123456789abcdef"),
            ("_Z10add_customPhS_S_", "_Z10add_customPhS_S_"),
            ("Ü_0123456789abcdef_1", "Ü"),
            ("", ""),
        ] {
            let name = KernelName::new(raw.to_owned());
            assert_eq!(name.shown(), expected, "{raw}");
            assert_eq!(name.raw, raw);
        }
    }
}
