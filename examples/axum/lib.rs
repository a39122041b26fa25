//! Nothing: the example is beside.
