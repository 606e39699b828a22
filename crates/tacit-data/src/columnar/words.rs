//! What is wrong with a file of columns in our own words: a library's may show a cell.

use super::dictionaries::CHANGED;
use crate::fault::PANICKED;

/// Of data that only those with its keys can read.
pub(super) const ENCRYPTED: &str = "encrypted data; decrypt it first";

/// What an error of a library's says.
pub(super) fn words(error: &str) -> String {
    // What our fence says of a panic names a place in a library, and is for those who mend it.
    match error.find(PANICKED) {
        Some(at) => format!("{}; make the file again", &error[at..]),
        None => of_library(error).to_owned(),
    }
}

/// What an error of a library's says that was to write.
pub(super) fn unwritten(error: &str) -> String {
    // The disk's own words show no cell, and our fence's are put right with the file's name.
    if error.contains("os error") || error.contains(PANICKED) {
        return error.to_owned();
    }
    if error.contains(CHANGED) {
        return CHANGED.to_owned();
    }
    "a part of it that tacit cannot write in this format; choose another format: .arrow, .parquet or .csv"
        .to_owned()
}

fn of_library(error: &str) -> &'static str {
    let has = |words: &[&str]| words.iter().any(|word| error.contains(word));
    let lower = error.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if says(&["utf-8", "utf8"]) {
        "text that is not UTF-8; write it as UTF-8"
    } else if has(&["Disabled feature at compile time", "The codec type"]) || says(&["lzo", "brotli"]) {
        "compression that tacit does not support; write the file with Snappy, Zstd or gzip"
    } else if says(&["encrypt", "decrypt", "pare"]) {
        ENCRYPTED
    } else if says(&["eof", "too early", "unexpected end", "smaller than", "end of file"]) {
        "the file is truncated; make it again"
    } else if says(&["not yet", "unsupported", "not supported", "not implemented", "nyi"]) {
        "a part that tacit does not support; write it as text"
    } else {
        "the data is damaged; make the file again"
    }
}

#[cfg(test)]
mod tests {
    use super::super::unwritable;
    use super::*;
    use std::path::Path;

    /// Where an output could not be written no input is to be made again.
    #[test]
    fn what_fails_to_write_is_not_said_to_read() {
        let panicked = crate::fault::guarded(|| -> Result<(), String> { panic!("a cell") });
        for error in [unwritten(panicked.as_ref().unwrap_err()), panicked.clone().unwrap_err()] {
            let said = unwritable(Path::new("o.parquet"), &error).to_string();
            assert!(said.contains("writing it failed at ") && said.contains("words.rs"), "{said}");
            assert!(!said.contains("read") && !said.contains("again") && !said.contains("a cell"), "{said}");
        }
        let said = unwritten("NYI: Attempting to write an Arrow type that is not yet implemented");
        assert!(said.contains("cannot write"), "{said}");
        assert!(unwritten("External: No space left on device (os error 28)").contains("No space"));
    }
}
