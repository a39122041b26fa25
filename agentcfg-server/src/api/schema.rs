//! The JSON Schema of a type, which the OpenAPI document shows and the running server does not need.

#[cfg(test)]
pub use self::described::Described;
#[cfg(not(test))]
pub use self::undescribed::Described;

/// The schema of a type. It has no content outside tests, where the OpenAPI document is generated.
#[derive(Debug, Clone, Copy)]
pub struct Schema {
    #[cfg(test)]
    pub(crate) name: fn() -> &'static str,
}

impl Schema {
    /// The schema of this type.
    pub const fn of<T: Described + ?Sized>() -> Self {
        Self {
            #[cfg(test)]
            name: std::any::type_name::<T>,
        }
    }
}

#[cfg(test)]
mod described {
    /// A type that has a JSON Schema.
    pub trait Described {}

    impl<T: ?Sized> Described for T {}
}

#[cfg(not(test))]
mod undescribed {
    /// A type that has a JSON Schema when the document is generated.
    pub trait Described {}

    impl<T: ?Sized> Described for T {}
}
