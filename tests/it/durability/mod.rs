//! Durability: crashes, shutdowns, and requests in flight.

mod removal;
mod stop;
