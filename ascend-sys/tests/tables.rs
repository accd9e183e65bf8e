//! What another crate can make of the tables: wrappers with the functions' own names, arguments and types, as a preload library needs them.
#![expect(unused_variables, reason = "the arguments only have to be there")]

use ascend_sys::types::*;
use ascend_sys::{for_each_collective, for_each_launch, for_each_mstx, for_each_rt_launch};

/// A module with a wrapper for each function, and a list of them with the names of their arguments.
macro_rules! wrappers {
    ([$module:ident $answer:expr] $($(#[$note:meta])* fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {
        mod $module {
            use super::*;

            $(pub(super) extern "C" fn $name($($arg: $type),*) -> $result { $answer })*

            pub(super) const ALL: &[(&str, &[&str], *const ())] =
                &[$((stringify!($name), &[$(stringify!($arg)),*], $name as *const ())),*];
        }
    };
}

for_each_launch! { wrappers, launch 200_001 }
for_each_rt_launch! { wrappers, rt 207_000 }
for_each_collective! { wrappers, collective 5 }
for_each_mstx! { wrappers, mstx Answer::any() }

/// An answer of either type that mstx functions have.
trait DefaultOf {
    fn default_of() -> Self;
}

/// Names the trait's function without naming the type.
struct Answer;

impl Answer {
    fn any<T: DefaultOf>() -> T {
        T::default_of()
    }
}

impl DefaultOf for () {
    fn default_of() -> Self {}
}

impl DefaultOf for u64 {
    fn default_of() -> Self {
        0
    }
}

impl DefaultOf for *mut c_void {
    fn default_of() -> Self {
        std::ptr::null_mut()
    }
}

#[test]
fn a_wrapper_made_of_a_table_has_the_type_of_the_function() {
    let null = std::ptr::null_mut();
    let _: ascend_sys::acl::launch::aclrtLaunchKernel = launch::aclrtLaunchKernel;
    let _: ascend_sys::rt::launch::rtKernelLaunch = rt::rtKernelLaunch;
    let _: ascend_sys::hccl::collective::HcclBarrier = collective::HcclBarrier;
    let _: ascend_sys::mstx::mstxRangeStartA = mstx::mstxRangeStartA;
    assert_eq!(launch::aclrtLaunchKernel(null, 1, null, 0, null), 200_001);
    assert_eq!(mstx::mstxRangeStartA(std::ptr::null(), null), 0);
}

#[test]
fn a_table_names_each_function_and_its_arguments() {
    let (_, arguments, _) = launch::ALL[0];
    assert_eq!(
        arguments,
        ["func", "num_blocks", "args", "args_size", "stream"]
    );
    let names: Vec<&str> = launch::ALL.iter().map(|(name, ..)| *name).collect();
    assert_eq!(names, ascend_sys::acl::launch::Launch::NAMES);
    assert_eq!(mstx::ALL.len(), ascend_sys::Mstx::NAMES.len());
    for (name, arguments, wrapper) in [launch::ALL, rt::ALL, collective::ALL].concat() {
        let streams = arguments.iter().filter(|argument| **argument == "stream");
        assert_eq!(streams.count(), 1, "{name} has one stream");
        assert!(!wrapper.is_null());
    }
}
