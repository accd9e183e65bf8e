//! The duration of each kernel: fixed, or drawn uniformly between two bounds. A draw depends only on the kernel's name and the number of its run, so that runs can
//! be repeated.

use super::variables::ns_of_us;
use std::collections::HashMap;

/// The bounds of a kernel's duration, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    least_ns: u64,
    most_ns: u64,
}

/// The durations of all kernels.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Durations {
    default: Bounds,
    by_name: HashMap<String, Bounds>,
}

impl Durations {
    /// Creates durations that are the same for all kernels.
    pub(crate) fn all(default_ns: u64) -> Self {
        Self {
            default: Bounds {
                least_ns: default_ns,
                most_ns: default_ns,
            },
            by_name: HashMap::new(),
        }
    }

    /// Parses a text such as `matmul=120,add=5..9`, in µs.
    pub(crate) fn parse(text: &str, default_ns: u64) -> Option<Self> {
        let mut durations = Self::all(default_ns);
        for pair in text.split(',') {
            let (name, bounds) = pair.trim().rsplit_once('=')?;
            durations
                .by_name
                .insert(name.to_owned(), Bounds::parse(bounds)?);
        }
        Some(durations)
    }

    /// Returns the bounds of a kernel and the seed of its draws.
    pub(crate) fn bounds(&self, name: &str) -> (Bounds, u64) {
        let bounds = self.by_name.get(name).copied().unwrap_or(self.default);
        let hashed = name
            .bytes()
            .fold(1, |hash, byte| mixed(hash ^ u64::from(byte)));
        (bounds, hashed)
    }
}

impl Bounds {
    fn parse(text: &str) -> Option<Self> {
        let (least, most) = text.split_once("..").unwrap_or((text, text));
        let ns = |us: &str| us.trim().parse().ok().and_then(ns_of_us);
        let bounds = Self {
            least_ns: ns(least)?,
            most_ns: ns(most)?,
        };
        (bounds.least_ns <= bounds.most_ns).then_some(bounds)
    }

    /// Returns the duration of the kernel's `count`-th run.
    pub(crate) fn draw_ns(self, seed: u64, count: u64) -> u64 {
        let width = self.most_ns - self.least_ns;
        match width {
            0 => self.least_ns,
            _ => self.least_ns + mixed(seed.wrapping_add(count)) % (width + 1),
        }
    }
}

/// Mixes bits with the finaliser of SplitMix64, so that similar inputs give independent outputs.
fn mixed(input: u64) -> u64 {
    let mut bits = input.wrapping_add(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}
