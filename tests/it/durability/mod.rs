//! Durability: crashes, shutdowns, and requests in flight.

mod full_disk;
mod removal;
mod stop;
