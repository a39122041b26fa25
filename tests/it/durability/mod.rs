//! Durability: crashes, shutdowns, and requests in flight.

mod crash;
mod stop;
