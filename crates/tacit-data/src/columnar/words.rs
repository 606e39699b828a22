//! What is wrong with a file of columns in our own words: a library's may show a cell.

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

fn of_library(error: &str) -> &'static str {
    let has = |words: &[&str]| words.iter().any(|word| error.contains(word));
    let lower = error.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if says(&["utf-8", "utf8"]) {
        "text that is not UTF-8; write it as UTF-8"
    } else if has(&["Disabled feature at compile time", "The codec type"]) || says(&["lzo", "brotli"]) {
        "compression that tacit does not read; write the file with Snappy, Zstd or gzip"
    } else if says(&["encrypt", "decrypt", "pare"]) {
        ENCRYPTED
    } else if says(&["eof", "too early", "unexpected end", "smaller than", "end of file"]) {
        "the file is cut short; make it again"
    } else if says(&["not yet", "unsupported", "not supported", "not implemented", "nyi"]) {
        "a part that tacit does not read; write it as text"
    } else {
        "the data is damaged; make the file again"
    }
}
