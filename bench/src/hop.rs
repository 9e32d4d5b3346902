//! One hop: objects are created at one real server and awaited at another, with a process between the two.
//!
//! That process is ours or the floor, by turns, so that whatever else the machine has to do hits both. [`trial`] says
//! what is done to them and how they are judged, [`side`] is a server with the namespace that they carry, [`carrier`]
//! is one of them as a process, [`floor`] is the bare loop, and [`engine`] the engine with the smallest route there is;
//! [`watch`] is what the floor and the clock read with.

pub mod carrier;
pub mod engine;
pub mod floor;
pub mod side;
pub mod trial;
pub mod watch;

pub use carrier::{Carrier, Running};
pub use side::Side;
pub use trial::{Bars, Trial};

/// The namespace that is carried.
pub const NAMESPACE: &str = "hop";
/// Writes under way at once, in the floor as in the engine.
pub const IN_FLIGHT: usize = 64;
