//! Mutated lines for unit tests.

/// Bytes that have a meaning in JSON, or are invalid in it.
const ALPHABET: &[u8] = b"{}[]\",:\\eE+-.0129tfnuXi \t\x01\x7f\xff\xc3";

/// Calls `check` with `rounds` mutated lines, or fifteen times as many with `SA_PROFILE_FULL=1`. Each is one of `seeds` with one or two bytes changed, removed
/// or inserted, or with its end cut off.
pub(crate) fn mutate(seeds: &[&[u8]], rounds: usize, mut check: impl FnMut(&[u8])) {
    let is_full = std::env::var("SA_PROFILE_FULL").is_ok_and(|value| value == "1");
    let rounds = if is_full { rounds * 15 } else { rounds };
    let mut state = 88_172_645_463_325_252_u64;
    let mut next = |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 16).expect("64-bit") % limit
    };
    for round in 0..rounds {
        let mut line = seeds[round % seeds.len()].to_vec();
        for _ in 0..=next(2) {
            let at = next(line.len());
            match next(4) {
                0 => line.truncate(at.max(1)),
                1 if line.len() > 1 => drop(line.remove(at)),
                2 => line[at] = ALPHABET[next(ALPHABET.len())],
                _ => line.insert(at, ALPHABET[next(ALPHABET.len())]),
            }
        }
        check(&line);
    }
}
