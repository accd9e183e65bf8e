//! A call site: the part of its events that is known in advance, encoded once.

mod interned;

use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use crate::sys::memory::{count_out_of_memory, reserve, try_box};
use crate::text::encode::Padded;
use crate::text::name::write_name;
use sa_format::Level;

/// Text of a site if there is not enough memory for the real one.
static NAMELESS: SiteText = SiteText {
    with_args: Padded::fixed(br#","name":"","cat":"","args":{"#),
    alone: Padded::fixed(b",\"name\":\"\",\"cat\":\"\"}\n"),
    plain: br#""name":"","cat":"""#,
};

/// The fixed part of the events of one place in the program. The macros create one for each use.
#[derive(Debug)]
pub struct Site {
    level: Level,
    category: &'static str,
    name: &'static str,
    text: AtomicPtr<SiteText>,
    /// `epoch << 32 | number in the ring's site table`; valid in that epoch only.
    registered: AtomicU64,
}

/// The text that all events of a site share.
#[derive(Debug)]
pub(crate) struct SiteText {
    /// `,"name":"…","cat":"…","args":{`
    pub(crate) with_args: Padded,
    /// `,"name":"…","cat":"…"}` and the newline.
    pub(crate) alone: Padded,
    /// `"name":"…","cat":"…"`
    pub(crate) plain: &'static [u8],
}

impl SiteText {
    /// Encodes the part of an event's line that all events of a call site share. If there is not
    /// enough memory, counts that and returns `None`.
    fn new(category: &str, name: &str) -> Option<SiteText> {
        let mut plain = Vec::new();
        if !write_name(&mut plain, category, name) {
            return None;
        }
        let with_args = surrounded(&plain, b",\"args\":{")?;
        let alone = surrounded(&plain, b"}\n")?;
        Some(SiteText {
            with_args: Padded::leak(with_args),
            alone: Padded::leak(alone),
            plain: plain.leak(),
        })
    }
}

/// Returns a comma, `plain` and `after` as one text. If there is not enough memory, counts that and
/// returns `None`.
fn surrounded(plain: &[u8], after: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    reserve(&mut text, 1 + plain.len() + after.len()).then(|| {
        text.push(b',');
        text.extend_from_slice(plain);
        text.extend_from_slice(after);
        text
    })
}

impl Site {
    /// Creates the description of a call site: the level, category and name of its events.
    pub const fn new(level: Level, category: &'static str, name: &'static str) -> Site {
        Site {
            level,
            category,
            name,
            text: AtomicPtr::new(std::ptr::null_mut()),
            registered: AtomicU64::new(0),
        }
    }

    /// Returns the level of detail that the site's events have.
    #[inline(always)]
    pub const fn level(&self) -> Level {
        self.level
    }

    /// Returns the encoded text that all events of the site share. The first caller creates it.
    /// Takes no lock, so a fork at any moment leaves no lock held.
    #[inline(always)]
    pub(crate) fn text(&'static self) -> &'static SiteText {
        let text = self.text.load(Ordering::Acquire);
        // SAFETY: a non-null pointer came from `Box::into_raw` below and is never freed.
        match unsafe { text.as_ref() } {
            Some(text) => text,
            None => self.make_text(),
        }
    }

    /// Encodes and stores the text that all events of the site share. If another thread was faster,
    /// returns that thread's text. If there is not enough memory, returns a text without a name.
    #[cold]
    fn make_text(&'static self) -> &'static SiteText {
        let Some(text) = SiteText::new(self.category, self.name) else {
            return &NAMELESS; // the next event tries again
        };
        let Ok(text) = try_box(text) else {
            count_out_of_memory();
            return &NAMELESS;
        };
        let (none, new) = (std::ptr::null_mut(), Box::into_raw(text));
        let stored = (self.text).compare_exchange(none, new, Ordering::AcqRel, Ordering::Acquire);
        let winner = stored.map_or_else(|other| other, |_| new); // if another thread was faster, ours is leaked once
        // SAFETY: both candidates came from `Box::into_raw` and are never freed.
        unsafe { &*winner }
    }

    /// Returns the name that the site's events have.
    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the site's number in the site table of the ring of recording `epoch`; 0 if the table
    /// has no room for the site. Returns `None` if the site was not registered in that recording
    /// yet.
    #[inline(always)]
    pub(crate) fn number(&self, epoch: u32) -> Option<u32> {
        let registered = self.registered.load(Ordering::Relaxed);
        let number = u32::try_from(registered & u64::from(u32::MAX)).unwrap_or(0);
        (registered >> 32 == u64::from(epoch)).then_some(number)
    }

    /// Stores the site's number in the site table of the ring of recording `epoch`; 0 if the table
    /// has no room for the site.
    pub(crate) fn set_number(&self, epoch: u32, number: u32) {
        let registered = u64::from(epoch) << 32 | u64::from(number);
        self.registered.store(registered, Ordering::Relaxed);
    }
}
