//! Items that exist with the feature `schema` alone, for macros that declare a type and its schema.

macro_rules! with_schema {
    ($($item:item)+) => {
        $(#[cfg(feature = "schema")] $item)+
    };
}

pub(crate) use with_schema;
