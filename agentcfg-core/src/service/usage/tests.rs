//! The ledger, on the memory engine: what is written, added up, shown and removed.
