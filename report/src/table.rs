//! The data of a report, as plain structs.

/// Defines an enum whose values have names, which are also used in the JSON.
macro_rules! named_enum {
    ($(#[$attribute:meta])* $vis:vis $type:ident { $($(#[$doc:meta])* $value:ident = $name:literal,)* }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
        $vis enum $type {
            $($(#[$doc])* #[serde(rename = $name)] $value,)*
        }

        impl $type {
            /// All values, in their order.
            $vis const ALL: [$type; [$($name),*].len()] = [$($type::$value),*];

            /// Returns the name of this value, as in the JSON.
            $vis fn name(self) -> &'static str {
                match self {
                    $($type::$value => $name,)*
                }
            }
        }
    };
}
pub(crate) use named_enum;

mod activity;
mod detail;
mod devices;
mod diff_headline;
mod load;
mod names;
mod recorded;
mod request;
mod request_summary;
mod run_diff;
mod run_report;
mod serving_time;
mod settings;
mod verdict;

pub use activity::*;
pub use detail::*;
pub use devices::*;
pub use diff_headline::*;
pub use load::*;
pub use names::*;
pub use recorded::*;
pub use request::*;
pub use request_summary::*;
pub use run_diff::*;
pub use run_report::*;
pub use serving_time::*;
pub use settings::*;
pub use verdict::*;
