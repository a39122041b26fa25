//! How values are read: the readers that parameters share, and the macro that declares a parameter with one of them.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use agentcfg_core::model::{InvalidId, Timestamp, UnknownWord};
use agentcfg_core::validate::{Faults, Invalid};

use crate::api::call::{ParameterDoc, Received, Shape};
use crate::http::errors::Failure;

/// Reads the value of a parameter by its description.
pub trait Reader {
    /// What it gives.
    type Value<'a>: Send;

    /// Reads the parameter. Faults that can be reported together with others go into `faults`.
    ///
    /// # Errors
    ///
    /// 400 where a required parameter is missing or breaks its rule.
    fn read<'a>(
        parameter: &ParameterDoc,
        request: &'a Received<'_>,
        faults: &mut Faults,
    ) -> Result<Self::Value<'a>, Failure>;
}

/// Declares parameters: `/// Meaning` `Name: Reader = description;`.
macro_rules! parameters {
    ($($(#[doc = $doc:literal])+ $name:ident: $reader:ty = $description:expr;)+) => {$(
        $(#[doc = $doc])+
        pub struct $name;

        impl $crate::api::call::Parameter for $name {
            type Value<'a> = <$reader as $crate::api::call::parameters::Reader>::Value<'a>;

            const DOC: $crate::api::call::ParameterDoc = $description;

            fn read<'a>(
                request: &'a $crate::api::call::Received<'_>,
                faults: &mut agentcfg_core::validate::Faults,
            ) -> Result<Self::Value<'a>, $crate::http::errors::Failure> {
                <$reader as $crate::api::call::parameters::Reader>::read(&Self::DOC, request, faults)
            }
        }
    )+};
}

pub(super) use parameters;

/// Declares readers, each with the expression that reads.
macro_rules! readers {
    ($($(#[doc = $doc:literal])+ $name:ident gives $value:ty: |$parameter:ident, $request:ident, $faults:pat_param| $read:expr;)+) => {$(
        $(#[doc = $doc])+
        pub struct $name;

        impl Reader for $name {
            type Value<'a> = $value;

            fn read<'a>(
                $parameter: &ParameterDoc,
                $request: &'a Received<'_>,
                $faults: &mut Faults,
            ) -> Result<Self::Value<'a>, Failure> {
                $read
            }
        }
    )+};
}

readers! {
    /// An optional text of the query.
    Text gives Option<&'a str>: |parameter, request, _| Ok(request.optional(parameter));

    /// A text of the query that must be there.
    RequiredText gives &'a str: |parameter, request, _| request.required(parameter);

    /// An optional header field. One that is sent twice counts as none.
    HeaderText gives Option<&'a str>: |parameter, request, _| {
        let mut fields = request.headers.get_all(parameter.name).iter();
        let text = fields.next().and_then(|field| field.to_str().ok());
        Ok(text.filter(|_| fields.next().is_none()))
    };

    /// An optional whole number.
    Number gives Option<u64>: |parameter, request, faults| Ok(request.number(parameter, faults));

    /// A whole number, with the default of its shape.
    NumberOrDefault gives u64: |parameter, request, faults| {
        let Shape::Number { default, .. } = parameter.shape else {
            return Ok(0);
        };
        Ok(request.number(parameter, faults).or(default).unwrap_or_default())
    };

    /// An optional whole number whose maximum fits into 32 bits.
    SmallNumber gives Option<u32>: |parameter, request, faults| {
        let number = request.number(parameter, faults);
        Ok(number.and_then(|number| u32::try_from(number).ok()))
    };

    /// An optional moment with any offset.
    Moment gives Option<Timestamp>: |parameter, request, faults| {
        let moment = |text: &str| {
            text.parse().map_err(|rule| {
                // In a query `+` means a space, so a `+` of an offset arrives as one.
                match text.replace(' ', "+").parse::<Timestamp>() {
                    Ok(_) => "must have the + of its offset written as %2B".to_owned(),
                    Err(_) => format!("{rule}"),
                }
            })
        };
        Ok(request.parsed(parameter, moment, faults))
    };

    /// A flag, which is `true` or `false`, the default.
    Flag gives bool: |parameter, request, faults| {
        let is_set = |text: &str| match text {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err("must be true or false".to_owned()),
        };
        Ok(request.parsed(parameter, is_set, faults).unwrap_or_default())
    };
}

/// An optional value of this type.
pub struct Parsed<T>(PhantomData<T>);

impl<T: FromStr<Err: BrokenRules> + Send> Reader for Parsed<T> {
    type Value<'a> = Option<T>;

    fn read(parameter: &ParameterDoc, request: &Received<'_>, faults: &mut Faults) -> Result<Option<T>, Failure> {
        Ok(request.parsed(parameter, str::parse, faults))
    }
}

/// A value of this type that must be there.
pub struct RequiredParsed<T>(PhantomData<T>);

impl<T: FromStr<Err: fmt::Display> + Send> Reader for RequiredParsed<T> {
    type Value<'a> = T;

    fn read(parameter: &ParameterDoc, request: &Received<'_>, _: &mut Faults) -> Result<T, Failure> {
        let text = request.required(parameter)?;
        text.parse().map_err(|rule| Failure::parameter(parameter.name, rule))
    }
}

impl Received<'_> {
    /// The value of an optional text of the query.
    pub(super) fn parsed<'a, T, E: BrokenRules>(
        &'a self,
        parameter: &ParameterDoc,
        parse: impl FnOnce(&'a str) -> Result<T, E>,
        faults: &mut Faults,
    ) -> Option<T> {
        let text = self.optional(parameter)?;
        parse(text).map_err(|broken| broken.report(parameter, faults)).ok()
    }
}

/// The rules that a text breaks.
pub trait BrokenRules {
    /// Notes them as faults of the parameter.
    fn report(&self, parameter: &ParameterDoc, faults: &mut Faults);
}

impl BrokenRules for Invalid {
    fn report(&self, parameter: &ParameterDoc, faults: &mut Faults) {
        for fault in self.faults() {
            refuse(parameter, fault.rule(), faults);
        }
    }
}

/// Errors whose text is the rule.
macro_rules! one_rule {
    ($($error:ty),+) => {$(
        impl BrokenRules for $error {
            fn report(&self, parameter: &ParameterDoc, faults: &mut Faults) {
                refuse(parameter, self, faults);
            }
        }
    )+};
}

one_rule!(String, InvalidId, UnknownWord);

/// Notes a fault of a parameter.
pub(super) fn refuse(parameter: &ParameterDoc, rule: impl fmt::Display, faults: &mut Faults) {
    faults.push(parameter.named(), rule);
}
