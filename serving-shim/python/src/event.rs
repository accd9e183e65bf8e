//! An event as a call describes it, and how it is written.

use pyo3::prelude::*;
use sa_recorder::{Args, AsyncSpan, Level, Recorder, SpanGuard, Track, site_counter, site_instant};

use crate::names::{self, Named};

/// Level, category, name and args of an event.
pub(crate) struct Event<'a, 'py> {
    pub(crate) named: Named,
    pub(crate) category: Option<&'a Bound<'py, PyAny>>,
    pub(crate) name: &'a Bound<'py, PyAny>,
    /// `"key":value,…`
    pub(crate) args: &'a [u8],
}

impl<'a, 'py> Event<'a, 'py> {
    /// Creates the description of an event, which is not yet recorded. `args` is `"key":value,…`.
    ///
    /// # Errors
    ///
    /// `TypeError` if the name or the category is not a text.
    pub(crate) fn new(
        level: Level,
        category: Option<&'a Bound<'py, PyAny>>,
        name: &'a Bound<'py, PyAny>,
        args: &'a [u8],
    ) -> PyResult<Event<'a, 'py>> {
        Ok(Event {
            named: names::intern(level, category, name)?,
            category,
            name,
            args,
        })
    }

    pub(crate) fn py(&self) -> Python<'py> {
        self.name.py()
    }

    pub(crate) fn level(&self) -> Level {
        self.named.level()
    }

    /// Opens a span, as this event describes it, on the calling thread's track.
    pub(crate) fn open_on_thread(&self) -> SpanGuard {
        if let Named::Site(site) = self.named {
            return SpanGuard::open(site, |args| args.raw(self.args));
        }
        let (category, name) = self.texts();
        let mut guard = Recorder::get().span(self.level(), &category, &name);
        guard.raw(self.args);
        guard
    }

    /// Opens a span, as this event describes it, inside `parent` or on the lane with this name. `texts` are the category and the name, which are needed if
    /// they are not interned. Runs no Python code.
    pub(crate) fn open_on_lane(
        &self,
        parent: Option<&AsyncSpan>,
        lane: Option<&str>,
        texts: Option<&(String, String)>,
    ) -> AsyncSpan {
        match (self.named, texts) {
            (Named::Site(site), _) => AsyncSpan::open_site_at(site, parent, lane, self.args),
            (Named::Uninterned(level), Some((category, name))) => {
                let args = Args::from_text(self.args.to_vec());
                AsyncSpan::open_at(level, category, name, parent, lane, &args)
            }
            (Named::Uninterned(_), None) => AsyncSpan::off(),
        }
    }

    /// Returns the event's category and name if they are not interned, otherwise `None`.
    pub(crate) fn uninterned_texts(&self) -> Option<(String, String)> {
        matches!(self.named, Named::Uninterned(_)).then(|| self.texts())
    }

    /// Writes an instant, as this event describes it, on the calling thread's track. Its time is now.
    pub(crate) fn instant_on_thread(&self) {
        if let Named::Site(site) = self.named {
            return site_instant(site, |args| args.raw(self.args));
        }
        let (category, name) = self.texts();
        let args = Args::from_text(self.args.to_vec());
        Recorder::get().instant(self.level(), &category, &name, &args);
    }

    /// Writes an instant, as this event describes it, on a track. Its time is `ts_ns`.
    pub(crate) fn instant_on_track(&self, track: Track, ts_ns: u64) {
        let (category, name) = self.texts();
        let args = Args::from_text(self.args.to_vec());
        track.instant(self.level(), &category, &name, ts_ns, &args);
    }

    /// Writes a counter, as this event describes it. The event's args are the counter's series.
    pub(crate) fn counter(&self) {
        if let Named::Site(site) = self.named {
            return site_counter(site, |args| args.raw(self.args));
        }
        let args = Args::from_text(self.args.to_vec());
        Recorder::get().counter(self.level(), &self.texts().1, &args);
    }

    /// Returns the event's category and name as texts.
    pub(crate) fn texts(&self) -> (String, String) {
        let category = names::category_text(self.category).unwrap_or_default();
        let name = names::text("name", self.name).unwrap_or_default();
        (category, name.into_owned())
    }
}
