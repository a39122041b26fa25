//! Durability: crashes, shutdowns, and requests in flight.

mod crash;
mod removal;
mod stop;
