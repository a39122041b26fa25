//! What the methods that set a field accept.

use std::path::PathBuf;

use super::Patch;

/// A value for a field of type `T`: one of that type, or what becomes one without a loss.
///
/// A text becomes a `String`, and a plain value the value of a field that may be null or left out.
///
/// The methods that set the fields of bodies, filters and settings take it. It is not implemented for other types.
///
/// ```
/// use agentcfg_core::model::{AgentPatch, Patch};
/// let patch = AgentPatch::default().role("author").model(Patch::Null);
/// assert_eq!(patch.role, Patch::Set("author".to_owned()));
/// ```
pub trait IntoField<T>: sealed::Sealed<T> {
    #[doc(hidden)]
    fn into_field(self) -> T;
}

mod sealed {
    #[allow(unnameable_types)]
    pub trait Sealed<T> {}
}

macro_rules! into_field {
    ($([$($generic:ident)?] $from:ty => $to:ty: |$value:ident| $becomes:expr;)+) => {$(
        impl$(<$generic>)? sealed::Sealed<$to> for $from {}

        impl$(<$generic>)? IntoField<$to> for $from {
            fn into_field(self) -> $to {
                let $value = self;
                $becomes
            }
        }
    )+};
}

into_field! {
    [T] T => T: |value| value;
    [T] T => Option<T>: |value| Some(value);
    [T] T => Patch<T>: |value| Patch::Set(value);
    [] &str => String: |text| text.to_owned();
    [] &str => Option<String>: |text| Some(text.to_owned());
    [] &str => Patch<String>: |text| Patch::Set(text.to_owned());
    [] &str => Option<PathBuf>: |path| Some(path.into());
    [] &String => String: |text| text.clone();
    [] &String => Option<String>: |text| Some(text.clone());
    [] &String => Patch<String>: |text| Patch::Set(text.clone());
}

/// Declares a struct of values to which a later release may add more, with a method that sets each of them.
///
/// It is for the crates of this workspace and no part of the interface.
#[doc(hidden)]
#[macro_export]
macro_rules! __settable {
    (
        $(#[$about:meta])*
        $name:ident $(<$life:lifetime>)? {
            $($(#[doc = $doc:literal])* $field:ident: $type:ty,)+
        }
    ) => {
        $(#[$about])*
        #[non_exhaustive]
        pub struct $name $(<$life>)? {
            $($(#[doc = $doc])* pub $field: $type,)+
        }

        impl $(<$life>)? $name $(<$life>)? {
            $crate::__setters! { $($(#[doc = $doc])* $field: $type,)+ }
        }
    };
}

/// The methods that set fields.
#[doc(hidden)]
#[macro_export]
macro_rules! __setters {
    ($($(#[doc = $doc:literal])* $field:ident: $type:ty,)+) => {$(
        #[doc = concat!("Sets `", stringify!($field), "`.")]
        ///
        $(#[doc = $doc])*
        #[must_use]
        pub fn $field(mut self, value: impl $crate::model::IntoField<$type>) -> Self {
            self.$field = $crate::model::IntoField::into_field(value);
            self
        }
    )+};
}

pub(crate) use {__settable as settable, __setters as setters};
