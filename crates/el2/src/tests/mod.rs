//! Tests of the whole hypervisor, on a machine made of memory.

mod cores;
mod hardware;
