//! Durability: crashes, shutdowns, and requests in flight.

mod crash;
mod full_disk;
mod removal;
mod stop;
