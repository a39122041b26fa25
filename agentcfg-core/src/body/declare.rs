//! The macro that declares a body: reading it, checking it, writing it and its schema follow from one list of fields.

/// Declares the body of a request.
///
/// ```text
/// body! {
///     /// What a new workspace starts with.              the description
///     #[derive(Debug, Clone)]
///     create NewWorkspace {                              or `change`: see below
///         /// Name for people.                           the field's description
///         name: required String as NotBlank<MAX_NAME>,   presence, type, and the rule if there is one beside the type
///     }
///     read_only: ["id"],                                 fields of the resource that a body must not name
///     examples: [{ "name": "Studio North" }],
/// }
/// ```
///
/// | presence | in a body that creates | in a body that changes |
/// |---|---|---|
/// | `required` | `T`, must be there | `Option<T>`, left out: stays |
/// | `defaulted` | `T`, left out: `T::default()` | `Option<T>`, left out: stays |
/// | `optional` | `Option<T>`, may be left out, not null | |
/// | `nullable` | `Option<T>`, null is the same as left out | [`Patch<T>`](crate::model::Patch) |
/// | `sparse` | as `nullable` | as `nullable`; the record shows it only where there is a value |
/// | `tristate` | [`Patch<T>`](crate::model::Patch): null, left out and a value are three things | |
///
/// `also: { … }` adds keywords to the schema. A field may end with `=> fits(other)`, a function that refuses its
/// presence or its absence by the value of a field before it. `whole: check` is a function that checks the fields
/// together.
macro_rules! body {
    (
        $(#[doc = $about:literal])*
        #[derive($($derive:ident),+)]
        $mode:ident $body:ident {
            $(
                $(#[doc = $doc:literal])*
                $field:ident: $presence:ident $type:ty $(as $rule:ty)? $(=> $fits:ident($other:ident))?,
            )+
        }
        read_only: $read_only:expr,
        examples: $examples:tt,
        $(also: $also:tt,)?
        $(whole: $whole:path,)?
    ) => {
        $(#[doc = $about])*
        ///
        /// A later release may add fields, so that other crates make it with its methods.
        #[derive($($derive),+, serde::Serialize)]
        #[non_exhaustive]
        pub struct $body {
            $(
                $(#[doc = $doc])*
                #[serde(skip_serializing_if = "crate::body::Field::is_absent")]
                pub $field: $crate::body::field_type!($mode $presence $type),
            )+
        }

        impl $body {
            $crate::model::into_field::setters! {
                $($(#[doc = $doc])* $field: $crate::body::field_type!($mode $presence $type),)+
            }

            /// Reads the JSON text of a request.
            ///
            /// # Errors
            ///
            /// Every fault of the text, in the order of the fields.
            ///
            /// ```
            #[doc = concat!("use agentcfg_core::model::", stringify!($body), ";")]
            #[doc = concat!("let invalid = ", stringify!($body), "::from_json(b\"no JSON\").unwrap_err();")]
            /// assert_eq!(invalid.faults().len(), 1);
            /// ```
            pub fn from_json(bytes: &[u8]) -> Result<$crate::validate::Valid<Self>, $crate::validate::Invalid> {
                $crate::validate::read(bytes)
            }

            /// Checks every field that is given.
            ///
            /// # Errors
            ///
            /// Every fault, in the order of the fields.
            ///
            /// ```
            #[doc = concat!("use agentcfg_core::model::", stringify!($body), ";")]
            #[doc = concat!("fn is_good(body: &", stringify!($body), ") -> bool {")]
            ///     body.validate().is_ok()
            /// }
            /// ```
            pub fn validate(&self) -> Result<(), $crate::validate::Invalid> {
                $crate::body::check(self)
            }
        }

        impl $crate::body::Body for $body {
            const FIELDS: &'static [&'static str] = &[$(stringify!($field)),+];
            const READ_ONLY: &'static [&'static str] = $read_only;

            fn read(fields: &mut $crate::body::Fields<'_>) -> Option<Self> {
                $(
                    $(fields.fits(stringify!($field), &$other, $fits);)?
                    let $field =
                        $crate::body::$mode::$presence::<$crate::body::rule!($type $(as $rule)?)>(fields, stringify!($field));
                )+
                let body = Self { $($field: $field?,)+ };
                $(fields.whole(&body, $whole);)?
                Some(body)
            }

            fn check(&self, faults: &mut $crate::validate::Faults) {
                $(
                    let value = $crate::body::Field::value(&self.$field);
                    $($fits(self.$other, stringify!($field), value.is_some(), faults);)?
                    if let Some(value) = value {
                        <$crate::body::rule!($type $(as $rule)?) as $crate::body::Rule>::check(value, stringify!($field), faults);
                    }
                )+
                $($whole(self, faults);)?
            }
        }

        $crate::body::schema! {
            $mode $body stringify!($body), concat!($($about, "\n"),*), $examples, [$($also)?],
            $(stringify!($field), $presence $crate::body::rule!($type $(as $rule)?), concat!($($doc, "\n"),*);)+
        }
    };
}

/// Declares a resource as it is shown and stored, with its schema, from a list of fields like those of [`body!`].
///
/// It is also read from what an earlier release wrote, which knew fewer fields: `defaulted`, `nullable` and `sparse`
/// ones may be missing. A `chosen` one is a [`Patch`](crate::model::Patch): there where the request asked for it, with
/// a value or null.
macro_rules! record {
    (
        $(#[doc = $about:literal])*
        #[derive($($derive:ident),+)]
        $record:ident $($name:literal)? {
            $(
                $(#[doc = $doc:literal])*
                $field:ident $($key:literal)?: $presence:ident $type:ty $(as $rule:ty)?,
            )+
        }
        examples: $examples:tt,
    ) => {
        $crate::body::readable! {
            [
                $(#[doc = $about])*
                #[derive($($derive),+, serde::Serialize, serde::Deserialize)]
                #[non_exhaustive]
                pub struct $record
            ]
            $([$(#[doc = $doc])* $(#[serde(rename = $key)])?] pub $field: $presence $type,)+
        }

        $crate::body::schema! {
            record $record $crate::body::name!($record $($name)?), concat!($($about, "\n"),*), $examples, [],
            $($crate::body::name!($field $($key)?), $presence $crate::body::rule!($type $(as $rule)?), concat!($($doc, "\n"),*);)+
        }
    };
}

/// A struct that serde reads, with fields of a [`record!`]; a `defaulted` one may be missing.
macro_rules! readable {
    ([$($head:tt)+] $([$($attribute:tt)*] $visible:vis $field:ident: $presence:ident $type:ty,)+) => {
        $crate::body::readable! { @ [$($head)+] {} $([$($attribute)*] $visible $field: $presence $type,)+ }
    };
    (@ [$($head:tt)+] {$($done:tt)+}) => {
        $($head)+ { $($done)+ }
    };
    (@ $head:tt {$($done:tt)*} [$($attribute:tt)*] $visible:vis $field:ident: defaulted $type:ty, $($rest:tt)*) => {
        $crate::body::readable! {
            @ $head {$($done)* $($attribute)* #[serde(default)] $visible $field: $type,} $($rest)*
        }
    };
    (@ $head:tt {$($done:tt)*} [$($attribute:tt)*] $visible:vis $field:ident: sparse $type:ty, $($rest:tt)*) => {
        $crate::body::readable! {
            @ $head {
                $($done)* $($attribute)* #[serde(skip_serializing_if = "Option::is_none")] $visible $field: Option<$type>,
            } $($rest)*
        }
    };
    (@ $head:tt {$($done:tt)*} [$($attribute:tt)*] $visible:vis $field:ident: chosen $type:ty, $($rest:tt)*) => {
        $crate::body::readable! {
            @ $head {
                $($done)* $($attribute)* #[serde(default, skip_serializing_if = "crate::model::Patch::is_absent")]
                $visible $field: $crate::model::Patch<$type>,
            } $($rest)*
        }
    };
    (@ $head:tt {$($done:tt)*} [$($attribute:tt)*] $visible:vis $field:ident: $presence:ident $type:ty, $($rest:tt)*) => {
        $crate::body::readable! {
            @ $head {
                $($done)* $($attribute)* $visible $field: $crate::body::field_type!(create $presence $type),
            } $($rest)*
        }
    };
}

/// Implements `JsonSchema` for a body or a record.
macro_rules! schema {
    (
        $mode:ident $type:ident $name:expr, $about:expr, $examples:tt, [$($also:tt)?],
        $($field:expr, $presence:ident $rule:ty, $doc:expr;)+
    ) => {
        // The rules of a record are named without the feature too, so that no import depends on it.
        const _: () = {
            $(let _ = ($field, std::marker::PhantomData::<$rule>);)+
        };

        $crate::model::with_schema::with_schema! {
            impl schemars::JsonSchema for $type {
                fn schema_name() -> std::borrow::Cow<'static, str> {
                    $name.into()
                }

                fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                    let properties = [$((
                        $field,
                        $crate::body::schema::$mode::$presence::<$rule>(generator, $doc),
                    )),+];
                    let schema = $crate::body::schema::object($about, properties, serde_json::json!($examples));
                    $(let schema = $crate::body::schema::extend(schema, serde_json::json!($also));)?
                    schema
                }
            }
        }
    };
}

/// The type of a field by its body's mode and its presence.
macro_rules! field_type {
    (create required $type:ty) => { $type };
    (create defaulted $type:ty) => { $type };
    (create optional $type:ty) => { Option<$type> };
    (create nullable $type:ty) => { Option<$type> };
    (create sparse $type:ty) => { Option<$type> };
    (create tristate $type:ty) => { $crate::model::Patch<$type> };
    (change required $type:ty) => { Option<$type> };
    (change defaulted $type:ty) => { Option<$type> };
    (change sparse $type:ty) => { $crate::model::Patch<$type> };
    (change nullable $type:ty) => { $crate::model::Patch<$type> };
}

/// The name in JSON: the one that is given, or that of the identifier.
macro_rules! name {
    ($ident:ident $name:literal) => {
        $name
    };
    ($ident:ident) => {
        stringify!($ident)
    };
}

/// The rule of a field: what it names, or every value of its type.
macro_rules! rule {
    ($type:ty as $rule:ty) => { $rule };
    ($type:ty) => { $crate::rules::Any<$type> };
}

pub(crate) use {body, field_type, name, readable, record, rule, schema};
