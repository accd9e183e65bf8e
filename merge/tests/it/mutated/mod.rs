//! A recipe for documents of every form, good ones and others.

pub(crate) mod document;
pub(crate) mod event;
