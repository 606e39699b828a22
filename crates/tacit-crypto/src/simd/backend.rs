//! Which kernels may run: detected by features, chosen by level and feature.

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
    pub(crate) fn from_name(name: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.name() == name)
    }
}

/// A feature of processors that kernels here ask for, and that `TACIT_SIMD=-NAME` does without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[expect(missing_docs, reason = "the processor's own names")]
pub enum Feature {
    Sse2,
    Ssse3,
    Sse41,
    Aes,
    Pclmulqdq,
    Avx2,
    Vaes,
    Vpclmulqdq,
    Gfni,
    Avx512f,
    Avx512bw,
    Avx512vl,
    Avx512dq,
    Avx512vbmi,
    Avx512ifma,
}

macro_rules! feature_names {
    ($($feature:ident $name:tt),*) => {
        impl Feature {
            /// All features, in the order of the levels that ask for them.
            pub const ALL: &[Feature] = &[$(Feature::$feature),*];

            /// The name that `TACIT_SIMD` takes after a minus.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Feature::$feature => $name),*
                }
            }

            /// Whether this processor has the feature.
            pub fn is_detected(self) -> bool {
                match self {
                    $(
                        #[cfg(target_arch = "x86_64")]
                        Feature::$feature => std::arch::is_x86_feature_detected!($name),
                    )*
                    #[cfg(not(target_arch = "x86_64"))]
                    _ => false,
                }
            }
        }
    };
}
feature_names!(
    Sse2 "sse2", Ssse3 "ssse3", Sse41 "sse4.1", Aes "aes", Pclmulqdq "pclmulqdq", Avx2 "avx2", Vaes "vaes",
    Vpclmulqdq "vpclmulqdq", Gfni "gfni", Avx512f "avx512f", Avx512bw "avx512bw", Avx512vl "avx512vl",
    Avx512dq "avx512dq", Avx512vbmi "avx512vbmi", Avx512ifma "avx512ifma"
);

/// A set of features that the processor was found to have.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Features(u32);

impl Features {
    /// Those of this processor.
    fn detect() -> Features {
        let mut found = Features(0);
        for feature in Feature::ALL.iter().filter(|feature| feature.is_detected()) {
            found.0 |= 1 << *feature as u8;
        }
        found
    }

    fn without(self, feature: Feature) -> Features {
        Features(self.0 & !(1 << feature as u8))
    }

    fn has(self, features: &[Feature]) -> bool {
        features.iter().all(|feature| self.0 >> *feature as u8 & 1 == 1)
    }

    /// Both features that widen AES and carry-less products.
    fn vector_aes(self) -> bool {
        self.has(&[Feature::Vaes, Feature::Vpclmulqdq])
    }

    /// The backend of `level`, with all that these features add to it.
    fn backend(self, level: Level) -> Option<Backend> {
        use Feature::*;
        let aesni = self.has(&[Sse2, Ssse3, Sse41, Aes, Pclmulqdq]);
        let avx2 = aesni && self.has(&[Avx2]);
        let vectors = [Avx512f, Avx512bw, Avx512vl, Avx512dq, Avx512vbmi, Gfni];
        let there = match level {
            Level::Portable => true,
            Level::AesNi => aesni,
            Level::Avx2 => avx2,
            Level::Avx512 => avx2 && self.has(&vectors) && self.vector_aes(),
        };
        let vector_aes = level >= Level::Avx2 && self.vector_aes();
        let ifma = level == Level::Avx512 && self.has(&[Avx512ifma]);
        there.then_some(Backend { level, vector_aes, ifma })
    }
}

/// A level that this processor was found to have: holding one is the proof that its kernels may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backend {
    level: Level,
    /// From [`Level::Avx2`] on, whether VAES and VPCLMULQDQ are there too.
    vector_aes: bool,
    /// At [`Level::Avx512`], whether IFMA is there too.
    ifma: bool,
}

/// Why the value of `TACIT_SIMD` cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectError {
    /// No level and no feature has that name.
    #[error(
        "TACIT_SIMD={0}: no such level or feature; use portable, aesni, avx2 or avx512, -FEATURE for each \
         feature to do without (`tacit doctor` lists them), or unset it"
    )]
    Unknown(String),
    /// The processor lacks the level, or what is left of its features does.
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
    pub const PORTABLE: Backend = Backend { level: Level::Portable, vector_aes: false, ifma: false };

    /// The backend of `level`, where the processor has it.
    pub fn detect(level: Level) -> Option<Backend> {
        Features::detect().backend(level)
    }

    /// Every backend of this processor that runs other code than the rest, slowest first: the levels, and
    /// before a level that has more than it must, the level with the least.
    pub fn available() -> Vec<Backend> {
        let all = Features::detect();
        let least = all.without(Feature::Vaes).without(Feature::Avx512ifma);
        let mut found = Vec::new();
        for level in Level::ALL {
            let without_ifma = all.without(Feature::Avx512ifma);
            for backend in [least, without_ifma, all].into_iter().filter_map(|set| set.backend(level)) {
                if !found.contains(&backend) {
                    found.push(backend);
                }
            }
        }
        found
    }

    /// The fastest backend of this processor.
    pub fn best() -> Backend {
        best_of(Features::detect())
    }

    /// The backend in use: the one that `TACIT_SIMD` names, or else the best; chosen once.
    ///
    /// A value that cannot be followed is passed over here; a program that wants to say so asks
    /// [`select_from_env`].
    #[inline]
    pub fn active() -> Backend {
        static ACTIVE: OnceLock<Backend> = OnceLock::new();
        *ACTIVE.get_or_init(|| select_from_env().unwrap_or_else(|_| Backend::best()))
    }

    /// The backend's level.
    pub const fn level(self) -> Level {
        self.level
    }

    /// Whether VAES and VPCLMULQDQ may be used.
    pub(super) const fn vector_aes(self) -> bool {
        self.vector_aes
    }

    /// Whether AVX-512 IFMA may be used.
    #[cfg(target_arch = "x86_64")]
    pub(super) const fn ifma(self) -> bool {
        self.ifma
    }

    /// The value of `TACIT_SIMD` that chooses this backend, where the processor has all features of its
    /// level.
    pub const fn name(self) -> &'static str {
        match self {
            Backend { level: Level::Avx2, vector_aes: false, .. } => "avx2,-vaes",
            Backend { level: Level::Avx512, ifma: false, .. } => "avx512,-avx512ifma",
            _ => self.level.name(),
        }
    }

    /// Every kernel's name with the name of the implementation that this backend runs.
    pub fn kernels(self) -> [(&'static str, &'static str); 16] {
        use Level::*;
        // The implementations for AVX-512, AVX2 and AES-NI; a kernel without one runs the next.
        let vectors = |avx512, avx2, aesni| match self.level {
            Avx512 => avx512,
            Avx2 => avx2,
            AesNi => aesni,
            Portable => "portable",
        };
        let wide = |wide512, wide256, wide128, portable| match (self.level, self.vector_aes) {
            (Portable, _) => portable,
            (AesNi, _) | (Avx2, false) => wide128,
            (Avx2, true) => wide256,
            (Avx512, _) => wide512,
        };
        let aes = wide("VAES-512", "VAES-256", "AES-NI", "fixsliced AES");
        let products =
            wide("VPCLMULQDQ-512", "VPCLMULQDQ-256", "PCLMULQDQ", "integer multiplication with holes");
        [
            ("accumulate", vectors("AVX-512", "AVX2", "portable")),
            ("aes", aes),
            ("blake3", vectors("AVX-512, 16 lanes", "AVX2, 8 lanes", "SSE2, 4 lanes")),
            ("gf128", products),
            ("gf256", vectors("GFNI", "AVX2 shuffles", "portable")),
            ("gf2x", wide("GFNI-512", "AVX2 shuffles", "SSSE3 shuffles", "portable")),
            ("ggm", if self.level == Avx512 { "VAES-512" } else { aes }),
            ("halfgates", aes),
            ("lpn", vectors("AVX-512", "portable", "portable")),
            ("lsbs", vectors("AVX-512", "AVX2", "portable")),
            ("ntt", vectors("AVX-512", "AVX2", "portable")),
            ("ristretto", if self.ifma { "AVX-512 IFMA, 8 points" } else { "curve25519-dalek" }),
            ("route", vectors("AVX-512", "AVX2", "portable")),
            ("scan", vectors("AVX-512", "AVX2", "portable")),
            ("scatter", vectors("AVX-512", "portable", "portable")),
            (
                "transpose",
                if self.level == Portable {
                    "word swaps"
                } else {
                    vectors("GFNI and VBMI", "AVX2 unpack", "SSE2 unpack")
                },
            ),
        ]
    }
}

/// The fastest backend that `features` allow.
fn best_of(features: Features) -> Backend {
    Level::ALL.into_iter().rev().find_map(|level| features.backend(level)).unwrap_or(Backend::PORTABLE)
}

/// The backend that the environment variable `TACIT_SIMD` asks for, or the best one when it is unset or
/// empty.
///
/// # Errors
/// When the value names no level or feature, or a level that this processor lacks.
pub fn select_from_env() -> Result<Backend, SelectError> {
    match std::env::var_os("TACIT_SIMD") {
        Some(value) => select(&value.to_string_lossy()),
        None => Ok(Backend::best()),
    }
}

/// The backend that `value` asks for: at most one level, and any number of features to do without, each after
/// a minus, with commas between them (`avx512,-avx512ifma`). Without a level, the best one that is left.
///
/// # Errors
/// As [`select_from_env`].
pub fn select(value: &str) -> Result<Backend, SelectError> {
    let unknown = || SelectError::Unknown(value.chars().take(40).collect());
    let (mut level, mut features) = (None, Features::detect());
    for word in value.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        if let Some(name) = word.strip_prefix('-') {
            let feature = Feature::ALL.iter().find(|f| f.name() == name).ok_or_else(unknown)?;
            features = features.without(*feature);
        } else if level.replace(Level::from_name(word).ok_or_else(unknown)?).is_some() {
            return Err(unknown());
        }
    }
    let best = best_of(features);
    match level {
        Some(wanted) => {
            features.backend(wanted).ok_or(SelectError::Unavailable { wanted, best: best.level() })
        }
        None => Ok(best),
    }
}

/// The processor features that kernels here ask for, each with whether this processor has it.
pub fn features() -> Vec<(&'static str, bool)> {
    Feature::ALL.iter().map(|feature| (feature.name(), feature.is_detected())).collect()
}

/// Calls `$kernel` of the caller's `portable`, or of its `x86`: 128, 256 or 512 bits wide.
macro_rules! dispatch {
    ($backend:expr, $kernel:ident($($arg:expr),*)) => {
        match ($backend.level(), $backend.vector_aes()) {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a backend of this level exists only where all its features were detected.
            ($crate::simd::Level::Avx512, _) => unsafe { x86::wide512::$kernel($($arg),*) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above; `vector_aes` is set only where VAES and VPCLMULQDQ were detected.
            ($crate::simd::Level::Avx2, true) => unsafe { x86::wide256::$kernel($($arg),*) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above; AVX2 as a level includes the features of AES-NI as a level.
            ($crate::simd::Level::AesNi | $crate::simd::Level::Avx2, _) => unsafe {
                x86::wide128::$kernel($($arg),*)
            },
            _ => portable::$kernel($($arg),*),
        }
    };
}
pub(super) use dispatch;
