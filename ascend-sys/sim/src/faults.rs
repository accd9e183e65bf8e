//! Faults on demand: `launch:5=107000` fails the fifth launch, `event_create:100+=207007` every one from the hundredth on, `launch:/7=107000` every seventh.

use crate::Outcome;
use std::sync::atomic::{AtomicU64, Ordering};

/// Defines the places where something can fail, with the names that a fault has for them.
macro_rules! sites {
    ($($(#[$doc:meta])* $site:ident = $name:literal,)*) => {
        /// A place where something can fail or go wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Site {
            $($(#[$doc])* $site,)*
        }

        const SITES: &[(&str, Site)] = &[$(($name, Site::$site)),*];
    };
}

sites! {
    Launch = "launch",
    LaunchHostArgs = "launch_host_args",
    EventCreate = "event_create",
    EventRecord = "event_record",
    EventQuery = "event_query",
    EventTimestamp = "event_timestamp",
    MsptiSubscribe = "mspti_subscribe",
    MsptiEnable = "mspti_enable",
    /// The value becomes the sticky error of the context when the kernel ends.
    Kernel = "kernel",
    /// The value is what every call gets from this task on.
    DeviceLost = "device_lost",
}

/// Which of the calls, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Only(u64),
    From(u64),
    Every(u64),
}

#[derive(Debug)]
struct Fault {
    site: Site,
    when: When,
    value: i32,
}

/// All faults that were asked for, and how often each site was passed.
#[derive(Debug)]
pub(crate) struct Faults {
    faults: Vec<Fault>,
    passed: [AtomicU64; SITES.len()],
}

impl Faults {
    pub(crate) fn none() -> Self {
        Self {
            faults: Vec::new(),
            passed: Default::default(),
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let faults = text.split(',').map(|one| Fault::parse(one.trim()));
        Some(Self {
            faults: faults.collect::<Option<_>>()?,
            ..Self::none()
        })
    }

    /// Fails if this pass of the site is to.
    pub(crate) fn check(&self, site: Site) -> Outcome {
        self.value(site).map_or(Ok(()), Err)
    }

    /// The value for this pass of the site, if it has a fault.
    pub(crate) fn value(&self, site: Site) -> Option<i32> {
        if self.faults.is_empty() {
            return None;
        }
        let count = self.passed[site as usize].fetch_add(1, Ordering::Relaxed) + 1;
        let mut here = self.faults.iter().filter(|fault| fault.site == site);
        here.find(|fault| fault.when.is(count))
            .map(|fault| fault.value)
    }
}

impl Fault {
    fn parse(text: &str) -> Option<Self> {
        let (name, rest) = text.split_once(':')?;
        let (when, value) = rest.split_once('=')?;
        let (_, site) = SITES.iter().find(|(known, _)| *known == name)?;
        Some(Self {
            site: *site,
            when: When::parse(when)?,
            value: value.parse().ok()?,
        })
    }
}

impl When {
    fn parse(text: &str) -> Option<Self> {
        let number = |text: &str| text.parse::<u64>().ok().filter(|number| *number > 0);
        if let Some(every) = text.strip_prefix('/') {
            number(every).map(Self::Every)
        } else if let Some(from) = text.strip_suffix('+') {
            number(from).map(Self::From)
        } else {
            number(text).map(Self::Only)
        }
    }

    fn is(self, count: u64) -> bool {
        match self {
            Self::Only(number) => count == number,
            Self::From(number) => count >= number,
            Self::Every(number) => count.is_multiple_of(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_hits_the_calls_it_names() {
        let passes = |text: &str| {
            let faults = Faults::parse(text).unwrap();
            [(); 4].map(|()| faults.value(Site::Launch).unwrap_or(0))
        };
        assert_eq!(passes("launch:2=7"), [0, 7, 0, 0]);
        assert_eq!(passes("launch:3+=7,kernel:1=8"), [0, 0, 7, 7]);
        assert_eq!(passes("kernel:1=8,launch:/2=7"), [0, 7, 0, 7]);
        for text in "|launch|launch:1|launch:0=1|lunch:1=1|launch:1=x".split('|') {
            assert!(Faults::parse(text).is_none(), "{text}");
        }
    }
}
