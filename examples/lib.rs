//! The examples are the other files of this directory. The documentation tests of this crate compile the code of
//! the README and run it where possible.

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
pub struct Readme;
