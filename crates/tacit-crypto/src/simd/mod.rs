//! Every intrinsic and every `unsafe` of the workspace: one file a kernel, each with its portable twin.
//!
//! A kernel takes a [`Backend`] first, which proves that the processor has what the kernel's code needs: a backend
//! can only be had by detection. Library code passes [`Backend::active`]; tests run every [`Backend::available`].

pub(crate) mod accumulate;
#[doc(hidden)]
pub mod aes;
mod aes_portable;
#[cfg(target_arch = "x86_64")]
mod aes_x86;
pub(crate) mod blake3;
#[doc(hidden)]
pub mod gf128;
mod gf128_portable;
#[cfg(target_arch = "x86_64")]
mod gf128_x86;
pub(crate) mod gf256;
#[doc(hidden)]
pub mod gf2x;
mod gf2x_portable;
#[cfg(target_arch = "x86_64")]
mod gf2x_x86;
pub(crate) mod ggm;
#[doc(hidden)]
pub mod halfgates;
mod halfgates_portable;
#[cfg(target_arch = "x86_64")]
mod halfgates_x86;
pub(crate) mod lpn;
#[cfg(target_arch = "x86_64")]
pub(crate) mod ntt;
pub(crate) mod pages;
mod pod;
#[cfg(target_arch = "x86_64")]
pub(crate) mod ristretto_ifma;
#[doc(hidden)]
pub mod route;
#[doc(hidden)]
pub mod scan;
#[doc(hidden)]
pub mod scatter;
#[doc(hidden)]
pub mod transpose;
mod transpose_portable;
#[cfg(target_arch = "x86_64")]
mod transpose_x86;
#[cfg(target_arch = "x86_64")]
mod x86;
#[cfg(test)]
mod zeroising;

use std::sync::OnceLock;

/// The families of code that a kernel can be written for, slowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Plain Rust, constant time, for every processor.
    Portable,
    /// 128-bit vectors with AES-NI and PCLMULQDQ.
    AesNi,
    /// 256-bit vectors; VAES and VPCLMULQDQ on 256 bits where the processor has them, else the AES-NI code.
    Avx2,
    /// 512-bit vectors: AVX-512 F, BW, VL, DQ, VBMI, with GFNI, VAES and VPCLMULQDQ.
    Avx512,
}

impl Level {
    /// All levels, slowest first.
    pub const ALL: [Level; 4] = [Level::Portable, Level::AesNi, Level::Avx2, Level::Avx512];

    /// The name that `TACIT_SIMD` takes.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Portable => "portable",
            Level::AesNi => "aesni",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
        }
    }

    /// The level called `name`.
    pub fn from_name(name: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.name() == name)
    }
}

/// A level that this processor was found to have: holding one is the proof that its kernels may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backend {
    level: Level,
    /// At [`Level::Avx2`], whether VAES and VPCLMULQDQ are there too.
    vector_aes: bool,
}

/// Why the value of `TACIT_SIMD` cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectError {
    /// No level has that name.
    #[error("TACIT_SIMD={0}: no such level; use portable, aesni, avx2 or avx512, or unset it")]
    Unknown(String),
    /// The processor lacks the level.
    #[error("TACIT_SIMD={}: this processor lacks it; the best it has is {}", wanted.name(), best.name())]
    Unavailable {
        /// The level asked for.
        wanted: Level,
        /// The best level there is.
        best: Level,
    },
}

impl Backend {
    /// The backend that every processor has.
    pub const PORTABLE: Backend = Backend { level: Level::Portable, vector_aes: false };

    /// The backend of `level`, where the processor has it.
    pub fn detect(level: Level) -> Option<Backend> {
        let vector_aes = has_vector_aes();
        has_level(level).then_some(Backend { level, vector_aes })
    }

    /// Every backend of this processor, slowest first.
    pub fn available() -> Vec<Backend> {
        Level::ALL.into_iter().filter_map(Backend::detect).collect()
    }

    /// The fastest backend of this processor.
    pub fn best() -> Backend {
        Backend::available().pop().unwrap_or(Backend::PORTABLE)
    }

    /// The backend in use: the one that `TACIT_SIMD` names, or else the best; chosen once.
    ///
    /// A value that cannot be followed is passed over here; a program that wants to say so asks [`select_from_env`].
    #[inline]
    pub fn active() -> Backend {
        static ACTIVE: OnceLock<Backend> = OnceLock::new();
        *ACTIVE.get_or_init(|| select_from_env().unwrap_or_else(|_| Backend::best()))
    }

    /// The backend's level.
    pub const fn level(self) -> Level {
        self.level
    }

    /// The name that `TACIT_SIMD` takes.
    pub const fn name(self) -> &'static str {
        self.level.name()
    }

    /// Each kernel's name with the name of the implementation that this backend runs.
    pub fn kernels(self) -> [(&'static str, &'static str); 3] {
        let clmul = match (self.level, self.vector_aes) {
            (Level::Portable, _) => ["fixsliced AES", "integer multiplication with holes"],
            (Level::AesNi, _) | (Level::Avx2, false) => ["AES-NI", "PCLMULQDQ"],
            (Level::Avx2, true) => ["VAES-256", "VPCLMULQDQ-256"],
            (Level::Avx512, _) => ["VAES-512", "VPCLMULQDQ-512"],
        };
        let transpose = match self.level {
            Level::Portable => "word swaps",
            Level::AesNi => "SSE2 unpack",
            Level::Avx2 => "AVX2 unpack",
            Level::Avx512 => "GFNI and VBMI",
        };
        [("aes", clmul[0]), ("gf128", clmul[1]), ("transpose", transpose)]
    }
}

/// The backend that the environment variable `TACIT_SIMD` asks for, or the best one when it is unset or empty.
///
/// # Errors
/// When the value names no level, or one that this processor lacks.
pub fn select_from_env() -> Result<Backend, SelectError> {
    match std::env::var_os("TACIT_SIMD") {
        Some(value) => select(&value.to_string_lossy()),
        None => Ok(Backend::best()),
    }
}

/// The backend called `name`; the best one when `name` is empty.
///
/// # Errors
/// As [`select_from_env`].
pub fn select(name: &str) -> Result<Backend, SelectError> {
    if name.is_empty() {
        return Ok(Backend::best());
    }
    let level =
        Level::from_name(name).ok_or_else(|| SelectError::Unknown(name.chars().take(40).collect()))?;
    Backend::detect(level)
        .ok_or_else(|| SelectError::Unavailable { wanted: level, best: Backend::best().level() })
}

/// The processor features that kernels here ask for, each with whether this processor has it.
pub fn features() -> Vec<(&'static str, bool)> {
    detect_features()
}

macro_rules! x86_features {
    ($($name:tt),*) => {
        #[cfg(target_arch = "x86_64")]
        fn detect_features() -> Vec<(&'static str, bool)> {
            vec![$(($name, std::arch::is_x86_feature_detected!($name))),*]
        }
    };
}
x86_features!(
    "sse2",
    "ssse3",
    "sse4.1",
    "aes",
    "pclmulqdq",
    "avx2",
    "vaes",
    "vpclmulqdq",
    "gfni",
    "avx512f",
    "avx512bw",
    "avx512vl",
    "avx512dq",
    "avx512vbmi",
    "avx512ifma"
);

#[cfg(not(target_arch = "x86_64"))]
fn detect_features() -> Vec<(&'static str, bool)> {
    Vec::new()
}

#[cfg(target_arch = "x86_64")]
fn has_level(level: Level) -> bool {
    use std::arch::is_x86_feature_detected as has;
    let aesni = has!("sse2") && has!("ssse3") && has!("sse4.1") && has!("aes") && has!("pclmulqdq");
    let avx2 = aesni && has!("avx2");
    let vectors =
        has!("avx512f") && has!("avx512bw") && has!("avx512vl") && has!("avx512dq") && has!("avx512vbmi");
    match level {
        Level::Portable => true,
        Level::AesNi => aesni,
        Level::Avx2 => avx2,
        Level::Avx512 => avx2 && vectors && has!("gfni") && has_vector_aes(),
    }
}

#[cfg(target_arch = "x86_64")]
fn has_vector_aes() -> bool {
    std::arch::is_x86_feature_detected!("vaes") && std::arch::is_x86_feature_detected!("vpclmulqdq")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_level(level: Level) -> bool {
    level == Level::Portable
}

#[cfg(not(target_arch = "x86_64"))]
fn has_vector_aes() -> bool {
    false
}

/// Calls `$kernel` of the module that `$backend` stands for: portable, 128, 256 or 512 bits wide.
macro_rules! dispatch {
    ($backend:expr, $portable:ident, $x86:ident, $kernel:ident($($arg:expr),*)) => {
        match ($backend.level(), $backend.vector_aes) {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a backend of this level exists only where all its features were detected.
            ($crate::simd::Level::Avx512, _) => unsafe { super::$x86::wide512::$kernel($($arg),*) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above; `vector_aes` is set only where VAES and VPCLMULQDQ were detected.
            ($crate::simd::Level::Avx2, true) => unsafe { super::$x86::wide256::$kernel($($arg),*) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above; AVX2 as a level includes the features of AES-NI as a level.
            ($crate::simd::Level::AesNi | $crate::simd::Level::Avx2, _) => unsafe {
                super::$x86::wide128::$kernel($($arg),*)
            },
            _ => super::$portable::$kernel($($arg),*),
        }
    };
}
use dispatch;
