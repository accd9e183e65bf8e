//! Sites whose names are known only at run time. One is created for each name, so that they are as
//! fast as those of the macros.

use std::io;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use super::Site;
use crate::sys::memory::{try_box, try_to_owned};
use sa_format::Level;

/// Maximum number of sites. A host that puts numbers into its names must not make the table grow
/// without limit.
const MAX_SITES: u32 = 1 << 14;
/// Number of places in the table. It is twice the number of sites, so that a lookup passes few
/// others.
const PLACES: usize = 1 << 15;
/// Maximum length of category and name together in bytes. A site's text is stored several times.
const MAX_NAME_BYTES: usize = 1024;

/// The sites of this process. There is no lock, so a fork at any moment leaves no lock held. The
/// child continues with its parent's sites.
static INTERNED: Table<PLACES> = Table::new();

/// Sites by level, category and name, at the first free place from their hash on. None is ever
/// removed.
struct Table<const N: usize> {
    sites: [AtomicPtr<Site>; N],
    count: AtomicU32,
}

impl Site {
    /// Returns the call site for a name that is known only at run time. The same level, category
    /// and name always give the same site. Returns `None` if the name is too long, or if there are
    /// too many sites. Such an event is recorded without a site.
    #[doc(hidden)]
    pub fn intern(level: Level, category: &str, name: &str) -> Option<&'static Site> {
        INTERNED.get(level, category, name, MAX_SITES)
    }

    /// Returns true if this is the site for that level, category and name.
    #[inline(always)]
    fn matches(&self, level: Level, category: &str, name: &str) -> bool {
        self.level == level && is_equal(self.name, name) && is_equal(self.category, category)
    }

    /// Creates a site that lives as long as the process.
    fn leak(level: Level, category: &str, name: &str) -> io::Result<&'static mut Site> {
        let (category, name) = (try_to_owned(category)?, try_to_owned(name)?);
        let mut site = try_box(Site::new(level, "", ""))?;
        (site.category, site.name) = (category.leak(), name.leak());
        Ok(Box::leak(site))
    }
}

impl<const N: usize> Table<N> {
    const fn new() -> Table<N> {
        Table {
            sites: [const { AtomicPtr::new(std::ptr::null_mut()) }; N],
            count: AtomicU32::new(0),
        }
    }

    /// Returns the site for a level, category and name, and creates it if necessary. Returns `None`
    /// if the name is too long, if the table already has `max_sites` sites, or if there is not
    /// enough memory.
    fn get(
        &self,
        level: Level,
        category: &str,
        name: &str,
        max_sites: u32,
    ) -> Option<&'static Site> {
        if category.len() + name.len() > MAX_NAME_BYTES {
            return None;
        }
        for place in self.places_from(hash(level, category, name)) {
            // SAFETY: a non-null pointer came from `Box::leak` and is never freed.
            let mut site = unsafe { place.load(Ordering::Acquire).as_ref() };
            if site.is_none() {
                site = Some(self.fill(place, level, category, name, max_sites)?);
            }
            if let Some(site) = site.filter(|site| site.matches(level, category, name)) {
                return Some(site);
            }
        }
        None
    }

    /// Returns every place of the table once, in the order in which a search with this hash visits
    /// them.
    fn places_from(&self, hash: u64) -> impl Iterator<Item = &AtomicPtr<Site>> {
        let first = usize::try_from(hash % N as u64).unwrap_or(0);
        let (before, from) = self.sites.split_at(first);
        from.iter().chain(before)
    }

    /// Creates a site and puts it into a free place of the table. If another thread was faster,
    /// returns that thread's site, which may have another name. Returns `None` if the table already
    /// has `max_sites` sites, or if there is not enough memory.
    fn fill(
        &self,
        place: &AtomicPtr<Site>,
        level: Level,
        category: &str,
        name: &str,
        max_sites: u32,
    ) -> Option<&'static Site> {
        if self.count.fetch_add(1, Ordering::Relaxed) >= max_sites {
            self.count.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let Ok(new) = Site::leak(level, category, name) else {
            self.count.fetch_sub(1, Ordering::Relaxed);
            return None;
        };
        let new = std::ptr::from_mut(new);
        let none = std::ptr::null_mut();
        let stored = place.compare_exchange(none, new, Ordering::AcqRel, Ordering::Acquire);
        let site = stored.map_or_else(|other| other, |_| new); // if another thread was faster, ours is leaked once and counted
        // SAFETY: both candidates came from `Box::leak`.
        Some(unsafe { &*site })
    }
}

/// Hashes the level, category and name that identify a site. Inlined because most names are so
/// short that a call would take longer than the work.
#[inline(always)]
fn hash(level: Level, category: &str, name: &str) -> u64 {
    let sum = mix_text(u64::from(level.bit()), category.as_bytes());
    mix_text(sum, name.as_bytes())
}

/// Returns a hash of a text and its length, combined with the hash `sum` of what comes before it.
#[inline(always)]
fn mix_text(sum: u64, text: &[u8]) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let step = |sum: u64, word: u64| fold_product(u128::from(sum ^ word) * u128::from(ODD));
    let (first, last) = end_words(text);
    let mut sum = step(sum ^ text.len() as u64, first);
    if text.len() > 16 {
        let (words, _) = text[8..].as_chunks::<8>();
        let add = |sum: u64, word: &[u8; 8]| step(sum, u64::from_le_bytes(*word));
        sum = words.iter().fold(sum, add);
    }
    step(sum, last)
}

/// Combines the upper and lower half of a product into 64 bits of a hash. The lower half alone
/// would not depend on the upper bits of the factors.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "each half fits")]
const fn fold_product(product: u128) -> u64 {
    (product as u64) ^ ((product >> 64) as u64)
}

/// Returns true if two texts are equal. Faster than a general comparison if they have at most 16
/// bytes.
#[inline(always)]
fn is_equal(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    one.len() == other.len()
        && end_words(one) == end_words(other)
        && (one.len() <= 16 || one == other)
}

/// Returns the first and the last eight bytes of a text as numbers. For a shorter text, returns
/// numbers that together with the length determine all its bytes.
#[inline(always)]
fn end_words(text: &[u8]) -> (u64, u64) {
    if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        return (u64::from_le_bytes(*first), u64::from_le_bytes(*last));
    }
    if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        return (u64::from(first), u64::from(last));
    }
    let add = |word: u64, byte: &u8| word << 8 | u64::from(*byte);
    (text.iter().fold(0, add), 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_site_for_each_level_category_and_name() {
        let site = Site::intern(Level::E2e, "c", "interned").unwrap();
        let name = String::from("interned"); // another address, the same text
        let again = Site::intern(Level::E2e, "c", &name).unwrap();
        assert!(std::ptr::eq(site, again));
        assert_eq!(site.text().plain, br#""name":"interned","cat":"c""#);
        assert_eq!(site.level(), Level::E2e);
        let others = [
            (Level::Kernel, "c", "interned"),
            (Level::E2e, "ci", "nterned"),
            (Level::E2e, "c", "interne"),
        ];
        for (level, category, name) in others {
            let other = Site::intern(level, category, name).unwrap();
            assert!(!std::ptr::eq(site, other), "{level:?} {category} {name}");
        }
        for len in 0..40 {
            let name = "n".repeat(len);
            let others = (0..len).map(|at| [&name[..at], "m", &name[at + 1..]].concat());
            for other in others.chain([name.clone() + "n"]) {
                assert!(!is_equal(&name, &other), "{name} {other}");
            }
        }
        let long = "n".repeat(MAX_NAME_BYTES);
        assert!(Site::intern(Level::E2e, "", &long).is_some());
        assert!(Site::intern(Level::E2e, "c", &long).is_none());
    }

    #[test]
    fn a_full_table_still_finds_what_it_holds() {
        static TABLE: Table<8> = Table::new();
        let held = ["a", "b", "c"].map(|name| TABLE.get(Level::E2e, "", name, 3).unwrap());
        assert!(TABLE.get(Level::E2e, "", "d", 3).is_none());
        for (name, held) in ["a", "b", "c"].into_iter().zip(held) {
            let found = TABLE.get(Level::E2e, "", name, 3).unwrap();
            assert!(std::ptr::eq(found, held), "{name}");
        }
        let more = ["d", "e", "f", "g", "h"].map(|name| TABLE.get(Level::E2e, "", name, 9));
        assert!(more.iter().all(Option::is_some), "room again");
        assert!(TABLE.get(Level::E2e, "", "i", 9).is_none(), "no free place");
    }

    #[test]
    fn threads_agree_on_the_sites() {
        static TABLE: Table<2048> = Table::new();
        let of_one_thread = || -> Vec<usize> {
            let sites = (0..500).map(|at| TABLE.get(Level::E2e, "t", &at.to_string(), 2048));
            sites
                .map(|site| std::ptr::from_ref(site.unwrap()).addr())
                .collect()
        };
        let found: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(of_one_thread)).collect();
            threads.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(found.iter().all(|sites| *sites == found[0]));
        let mut distinct = found[0].clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), 500);
    }
}
