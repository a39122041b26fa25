//! The examples are the files beside this one. The code of the README is compiled, and run where it can be, as the
//! documentation tests of this crate.

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
pub struct Readme;
