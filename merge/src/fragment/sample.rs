//! Headers and mutated lines for unit tests.

use sa_recorder::format::{FragmentHeader, RingKind, VERSION};

/// A header of process `pid`, with its nonce spelled by its pid.
pub(crate) fn header(pid: u32) -> FragmentHeader {
    FragmentHeader {
        version: VERSION,
        nonce: format!("{pid:016x}"),
        segment: 0,
        run: "run".into(),
        main: false,
        host: "node".into(),
        boot_id: "boot".into(),
        pid_ns: 1,
        time_ns: 1,
        monotonic_offset_ns: 0,
        pid,
        start_time: u64::from(pid),
        exe: "python3".into(),
        script: None,
        ring: RingKind::File,
        page_bytes: 4096,
        levels: None,
    }
}

/// Bytes that mean something in JSON, or end what does.
const ALPHABET: &[u8] = b"{}[]\",:\\eE+-.0129tfnuXi \t\x01\x7f\xff\xc3";

/// Calls `check` with `rounds` lines, fifteen times as many with `SA_PROFILE_FULL=1`: one seed after another, with one or two bytes changed,
/// taken out or put in, or the end cut off.
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
