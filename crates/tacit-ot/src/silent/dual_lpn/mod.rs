//! Silent OT from dual LPN (Boyle–Couteau–Gilboa–Ishai–Kohl–Rindal–Scholl, CCS '19).

pub mod bcgikrs19;
pub mod code;
pub mod dealer;
pub mod nisc;
pub(crate) mod noise;
mod params;
mod run;
mod short;
pub mod signed;
pub mod tpprf;
