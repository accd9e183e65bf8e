//! The meaning of the event categories of Kineto, the profiler in PyTorch (torch.profiler).

use memchr::memmem;

/// Accelerators whose names begin the categories of Kineto and its forks.
const ACCELERATORS: [&str; 15] = [
    "gpu",
    "cuda",
    "hip",
    "rocm",
    "xpu",
    "mtia",
    "glow",
    "hpu",
    "npu",
    "mlu",
    "musa",
    "gcu",
    "aiu",
    "privateuse1",
    "privateuseone",
];

/// Maximum length of a category of Kineto.
const LONGEST: usize = 32;

/// The meaning of a category.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CategoryUse {
    /// A device worked.
    Work,
    /// A device worked if the track belongs to one. Some profilers use this category on the host as well.
    WorkOnDevice,
    /// A region of the program, repeated on the tracks of a device. It lasts from the first kernel launched in it to the end of the last one.
    Annotation,
    /// The host worked.
    Host,
    /// Anything else on a device or on the host, such as waiting for an event.
    Other,
}

/// Returns the meaning of an event category, and true if no profiler but Kineto uses it. Returns `None` for categories that Kineto does not use.
fn kineto(category: &str) -> Option<(CategoryUse, bool)> {
    use CategoryUse::{Annotation, Host, Other, Work, WorkOnDevice};
    let mut lower = [0; LONGEST];
    let lower = lower.get_mut(..category.len())?;
    lower.copy_from_slice(category.as_bytes());
    lower.make_ascii_lowercase();
    let category = std::str::from_utf8(lower).ok()?;
    Some(match category {
        "kernel" | "memcpy" | "memset" => (Work, false),
        "concurrent_kernel" => (Work, true),
        "collective_comm" => (WorkOnDevice, true),
        "cpu_op" | "cpu_instant_event" | "python_function" | "user_annotation" => (Host, true),
        "operator" | "runtime" => (Host, false),
        "overhead" | "trace" => (Other, false),
        _ => {
            let (of, what) = category.split_once('_')?;
            let is_known = ACCELERATORS.contains(&of);
            let of_accelerator = match what {
                "memcpy" | "memset" | "kernel" | "ccp_events" => Work,
                "op" => WorkOnDevice,
                "meta_op" => Other,
                "user_annotation" => Annotation,
                "runtime" | "driver" => Host,
                "sync" | "event" | "events" | "insight" | "counters" | "pm_counter"
                | "profiler_range" | "scope_profiler" | "workloadd" => Other,
                _ => return None,
            };
            (is_known.then_some(of_accelerator)?, true)
        }
    })
}

/// Returns the meaning of an event category of Kineto; `None` for other categories.
pub fn category_use(category: &str) -> Option<CategoryUse> {
    kineto(category).map(|(category_use, _)| category_use)
}

/// Returns true for an event category of host calls into a device runtime or driver, such as `cuda_runtime`. Such a call may launch work on the
/// device.
pub fn is_runtime(category: &str) -> bool {
    let is = |end: &str| {
        let start = category.len().checked_sub(end.len());
        start.is_some_and(|start| category.as_bytes()[start..].eq_ignore_ascii_case(end.as_bytes()))
    };
    is("_runtime") || is("_driver") || category.eq_ignore_ascii_case("runtime")
}

/// Returns true for an event category that PyTorch's traces give to flow arrows from a launch on the host to the work on a device.
pub(crate) fn is_launch_arrow(category: &str) -> bool {
    const ARROWS: [&str; 5] = [
        "ac2g",
        "async_gpu",
        "async_npu",
        "HostToDevice",
        "correlation",
    ];
    ARROWS.contains(&category)
}

/// Summary of the categories of a track's spans, which shows if the track belongs to a device or to the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrackCategories(u8);

impl TrackCategories {
    const ANY: u8 = 1;
    const KINETO: u8 = 2;
    const WORK: u8 = 4;
    const LAUNCHED: u8 = 8;
    const ANNOTATION: u8 = 16;
    const HOST: u8 = 32;
    const ON_DEVICE: u8 = 64;

    /// Creates the summary of one span from its category and the JSON text of its args.
    pub fn of_span(category: &str, args: &[u8]) -> TrackCategories {
        if category.is_empty() {
            return TrackCategories::default();
        }
        let Some((category_use, is_kineto)) = kineto(category) else {
            return TrackCategories(TrackCategories::ANY);
        };
        let found = match category_use {
            CategoryUse::Work => {
                let has = |arg: &[u8]| memmem::find(args, arg).is_some();
                // Our own launches on the host have the arg `launch`, and may have the others.
                let is_launched =
                    has(br#""stream""#) && has(br#""device""#) && !has(br#""launch""#);
                TrackCategories::WORK | (TrackCategories::LAUNCHED * u8::from(is_launched))
            }
            CategoryUse::WorkOnDevice => TrackCategories::ON_DEVICE,
            CategoryUse::Annotation => TrackCategories::ANNOTATION,
            CategoryUse::Host => TrackCategories::HOST,
            CategoryUse::Other => 0,
        };
        let kineto = if is_kineto {
            TrackCategories::KINETO
        } else {
            0
        };
        TrackCategories(TrackCategories::ANY | kineto | found)
    }

    /// Adds to this summary the categories of other spans of the same track.
    pub fn add(&mut self, others: TrackCategories) {
        self.0 |= others.0;
    }

    /// Returns true if any of the bits in `what` is set, such as [`TrackCategories::HOST`].
    fn has(self, what: u8) -> bool {
        self.0 & what != 0
    }

    /// Returns true if any span of the track has a category.
    pub fn any(self) -> bool {
        self.has(TrackCategories::ANY)
    }

    /// Returns true if a span of the track has a category that only Kineto uses.
    pub fn is_kineto(self) -> bool {
        self.has(TrackCategories::KINETO)
    }

    /// Returns true if the track belongs to the host by its categories: some are of the host, and none is of device work or annotations.
    pub fn is_host(self) -> bool {
        self.has_host() && !self.has_work() && !self.has(TrackCategories::ANNOTATION)
    }

    /// Returns true if a span of the track has a category of device work. Some profilers use such categories on the host as well.
    pub fn has_work(self) -> bool {
        self.has(TrackCategories::WORK | TrackCategories::ON_DEVICE)
    }

    /// Returns true if a span of the track has a category of the host.
    pub fn has_host(self) -> bool {
        self.has(TrackCategories::HOST)
    }

    /// Returns true if the track certainly belongs to a device, whatever the name of its process. `is_kineto` says that Kineto wrote the trace.
    /// Otherwise the category `kernel` is not enough, because host spans that launch kernels use it as well.
    pub fn is_device(self, is_kineto: bool) -> bool {
        self.has(TrackCategories::LAUNCHED)
            || self.has(TrackCategories::WORK) && is_kineto && !self.has_host()
    }
}

/// How the events of a track count as work of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrackUse {
    /// A track of the host.
    #[default]
    Host,
    /// All events are work.
    Work,
    /// Events are work if their category says so.
    ByCategory,
    /// Tasks of an NPU. All are work, except for tasks that only wait for an event, record or reset one, or mark a place.
    Tasks {
        /// False if the collectives have their own tracks.
        shows_collectives: bool,
    },
    /// Whole collectives.
    Collectives,
    /// Parts of collectives.
    CollectiveParts,
    /// Sampled launches. They are work, except while another trace contains all kernels.
    Sampled,
    /// Regions: annotations, steps, or tracks that repeat the work or were computed from it.
    Regions,
}
