//! Macros that declare parameters with the same reader.

/// Declares optional whole numbers.
macro_rules! numbers {
    ($($(#[doc = $doc:literal])+ $type:ident, $component:literal, $name:literal from $minimum:literal, $about:literal, $example:expr;)+) => {$(
        $(#[doc = $doc])+
        pub struct $type;

        impl $crate::api::call::Parameter for $type {
            type Value<'a> = Option<u64>;

            const DOC: $crate::api::call::ParameterDoc = $crate::api::call::ParameterDoc::query(
                $component,
                $name,
                $crate::api::call::Shape::Number { minimum: $minimum, maximum: None, default: None },
                $about,
            )
            .example($example);

            fn read(request: &$crate::api::call::Received<'_>, faults: &mut agentcfg_core::validate::Faults) -> Result<Option<u64>, $crate::http::errors::Failure> {
                Ok(request.number(&Self::DOC, faults))
            }
        }
    )+};
}

/// Declares optional moments.
macro_rules! moments {
    ($($(#[doc = $doc:literal])+ $type:ident, $component:literal, $name:literal, $about:literal;)+) => {$(
        $(#[doc = $doc])+
        pub struct $type;

        impl $crate::api::call::Parameter for $type {
            type Value<'a> = Option<agentcfg_core::model::Timestamp>;

            const DOC: $crate::api::call::ParameterDoc = $crate::api::call::ParameterDoc::query($component, $name, MOMENT, $about).example(MOMENT_EXAMPLE);

            fn read(request: &$crate::api::call::Received<'_>, faults: &mut agentcfg_core::validate::Faults) -> Result<Option<agentcfg_core::model::Timestamp>, $crate::http::errors::Failure> {
                Ok(request.moment(&Self::DOC, faults))
            }
        }
    )+};
}

/// Declares optional texts.
macro_rules! texts {
    ($($(#[doc = $doc:literal])+ $type:ident, $component:literal, $name:literal, $about:literal, $example:expr;)+) => {$(
        $(#[doc = $doc])+
        pub struct $type;

        impl $crate::api::call::Parameter for $type {
            type Value<'a> = Option<&'a str>;

            const DOC: $crate::api::call::ParameterDoc =
                $crate::api::call::ParameterDoc::query($component, $name, $crate::api::call::Shape::Text, $about).example($example);

            fn read<'a>(request: &'a $crate::api::call::Received<'_>, _: &mut agentcfg_core::validate::Faults) -> Result<Option<&'a str>, $crate::http::errors::Failure> {
                Ok(request.optional(&Self::DOC))
            }
        }
    )+};
}

/// Declares required texts.
macro_rules! required_texts {
    ($($(#[doc = $doc:literal])+ $type:ident = $description:expr;)+) => {$(
        $(#[doc = $doc])+
        pub struct $type;

        impl $crate::api::call::Parameter for $type {
            type Value<'a> = &'a str;

            const DOC: $crate::api::call::ParameterDoc = ($description).required();

            fn read<'a>(
                request: &'a $crate::api::call::Received<'_>,
                _: &mut agentcfg_core::validate::Faults,
            ) -> Result<&'a str, $crate::http::errors::Failure> {
                request.required(&Self::DOC)
            }
        }
    )+};
}

/// Declares flags, which are `true` or `false`, with the default.
macro_rules! flags {
    ($($(#[doc = $doc:literal])+ $type:ident, $component:literal, $name:literal, $about:literal;)+) => {$(
        $(#[doc = $doc])+
        pub struct $type;

        impl $crate::api::call::Parameter for $type {
            type Value<'a> = bool;

            const DOC: $crate::api::call::ParameterDoc = $crate::api::call::ParameterDoc::query(
                $component,
                $name,
                $crate::api::call::Shape::Word { words: &["false", "true"], default: "false" },
                $about,
            )
            .example("\"true\"");

            fn read(
                request: &$crate::api::call::Received<'_>,
                faults: &mut agentcfg_core::validate::Faults,
            ) -> Result<bool, $crate::http::errors::Failure> {
                Ok(request.flag(&Self::DOC, faults))
            }
        }
    )+};
}

pub(super) use {flags, moments, numbers, required_texts, texts};
