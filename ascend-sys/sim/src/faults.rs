//! Injected faults: `launch:5=107000` fails the fifth launch, `event_create:100+=207007` every event creation from the hundredth on, `launch:/7=107000` every
//! seventh launch.

use crate::Outcome;
use std::sync::atomic::{AtomicU64, Ordering};

/// Defines the sites of faults and their names in `ASCEND_SIM_FAULTS`.
macro_rules! sites {
    ($($(#[$doc:meta])* $site:ident = $name:literal,)*) => {
        /// A site where a fault can be injected.
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
    /// The value becomes the permanent error of the context when the kernel ends.
    Kernel = "kernel",
    /// Every call returns the value from this task on.
    DeviceLost = "device_lost",
}

/// The calls that a fault affects, counted from 1.
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

/// All requested faults, and the number of calls at each site.
#[derive(Debug)]
pub(crate) struct Faults {
    faults: Vec<Fault>,
    calls: [AtomicU64; SITES.len()],
}

impl Faults {
    pub(crate) fn none() -> Self {
        Self {
            faults: Vec::new(),
            calls: Default::default(),
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let faults = text.split(',').map(|fault| Fault::parse(fault.trim()));
        Some(Self {
            faults: faults.collect::<Option<_>>()?,
            ..Self::none()
        })
    }

    /// Counts a call at a site, and fails if the call has a fault.
    pub(crate) fn check(&self, site: Site) -> Outcome {
        self.value(site).map_or(Ok(()), Err)
    }

    /// Counts a call at a site, and returns the value of its fault, if it has one.
    pub(crate) fn value(&self, site: Site) -> Option<i32> {
        if self.faults.is_empty() {
            return None;
        }
        let count = self.calls[site as usize].fetch_add(1, Ordering::Relaxed) + 1;
        let mut at_site = self.faults.iter().filter(|fault| fault.site == site);
        at_site
            .find(|fault| fault.when.includes(count))
            .map(|fault| fault.value)
    }
}

impl Fault {
    fn parse(text: &str) -> Option<Self> {
        let (name, rest) = text.split_once(':')?;
        let (when, value) = rest.split_once('=')?;
        let (_, site) = SITES.iter().find(|(site_name, _)| *site_name == name)?;
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

    fn includes(self, count: u64) -> bool {
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
    fn a_fault_affects_the_calls_it_names() {
        let values = |text: &str| {
            let faults = Faults::parse(text).unwrap();
            [(); 4].map(|()| faults.value(Site::Launch).unwrap_or(0))
        };
        assert_eq!(values("launch:2=7"), [0, 7, 0, 0]);
        assert_eq!(values("launch:3+=7,kernel:1=8"), [0, 0, 7, 7]);
        assert_eq!(values("kernel:1=8,launch:/2=7"), [0, 7, 0, 7]);
        for text in "|launch|launch:1|launch:0=1|lunch:1=1|launch:1=x".split('|') {
            assert!(Faults::parse(text).is_none(), "{text}");
        }
    }
}
