//! Every parser of bytes that a peer, a file or a user gives, as a function that panics where something does not
//! hold of what was read: it is written as it was read, it is read the same twice, and what is sealed or signed does
//! not pass changed. `fuzz/` feeds them to libFuzzer, and a test replays what is kept of that.
//!
//! Parsers of other people's formats may panic behind the fence that the product has around them.
#![forbid(unsafe_code)]

mod circuits;
mod files;
mod job;
mod net;
mod place;
mod serve;
mod tables;
mod transfers;

/// What is fuzzed: a name, and a function of bytes.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name, also that of its seed folder.
    pub name: &'static str,
    /// Reads the bytes. Panics where something does not hold.
    pub run: fn(&[u8]),
    /// The longest input that is worth trying.
    pub longest: usize,
    /// Dictionary entries for the fuzzer.
    pub words: &'static [&'static [u8]],
}

impl Target {
    /// The words as libFuzzer reads them.
    pub fn dictionary(&self) -> String {
        let plain = |byte: u8| byte.is_ascii_graphic() && !br#""\\"#.contains(&byte);
        let shown =
            |byte: &u8| if plain(*byte) { char::from(*byte).to_string() } else { format!("\\x{byte:02x}") };
        self.words
            .iter()
            .map(|word| format!("\"{}\"\n", word.iter().map(shown).collect::<String>()))
            .collect()
    }
}

/// All targets.
pub const TARGETS: &[&[Target]] = &[
    net::NET_TARGETS,
    serve::SERVE_TARGETS,
    job::JOB_TARGETS,
    transfers::TRANSFERS_TARGETS,
    files::FILES_TARGETS,
    circuits::CIRCUITS_TARGETS,
    tables::TABLES_TARGETS,
];

/// All targets, one by one.
pub fn targets() -> impl Iterator<Item = &'static Target> {
    TARGETS.iter().copied().flatten()
}

/// The target of this name.
pub fn target(name: &str) -> Option<&'static Target> {
    targets().find(|target| target.name == name)
}

/// Whole messages and files that are made here, each with its target's name: from them the seeds were grown, with the
/// files of `tools/mutants`.
pub fn whole() -> Vec<(&'static str, Vec<u8>)> {
    [
        net::whole(),
        serve::whole(),
        job::whole(),
        transfers::whole(),
        files::whole(),
        circuits::whole(),
        tables::whole(),
    ]
    .concat()
}

/// The bytes as text, if they are UTF-8.
fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// The first byte, and the rest.
fn first(bytes: &[u8]) -> (u8, &[u8]) {
    bytes.split_first().map_or((0, &[]), |(first, rest)| (*first, rest))
}
