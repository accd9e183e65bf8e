//! Texts of records: each is there once, for as long as the process is.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char};

/// The texts that were asked for.
#[derive(Default)]
pub(crate) struct Names(HashMap<String, &'static CStr>);

impl Names {
    /// The text as C has it; up to a NUL in it.
    pub(crate) fn of(&mut self, name: &str) -> *const c_char {
        if let Some(known) = self.0.get(name) {
            return known.as_ptr();
        }
        let text = name.split('\0').next().unwrap_or_default();
        let text: &'static CStr =
            Box::leak(CString::new(text).unwrap_or_default().into_boxed_c_str());
        self.0.insert(name.to_owned(), text);
        text.as_ptr()
    }
}
