//! Generator of documents of every form, valid and invalid.

pub(crate) mod document;
pub(crate) mod event;
