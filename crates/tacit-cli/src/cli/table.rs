//! How a table is read: the options that every subcommand with a table has.

use tacit::data::csv::{Delimiter, EmptyKeys, ErrorCells, Header, MaxRow, Options, Quote};

/// How our table is written.
#[derive(clap::Args, Clone, Copy)]
pub(crate) struct Dialect {
    /// What separates the fields of our file: one character, or auto for the most frequent of , ; | and tab
    #[arg(long, value_name = "CHAR", default_value = "auto", value_parser = delimiter)]
    delimiter: Delimiter,
    /// What encloses fields of our file that hold a separator: one character, or none
    #[arg(long, value_name = "CHAR", default_value = "\"", value_parser = quote)]
    quote: Quote,
    /// What stands before a quote in a quoted field of our file, such as \, if quotes are not doubled
    #[arg(long, value_name = "CHAR", value_parser = byte)]
    escape: Option<u8>,
    /// The first line of our file is data; columns are then named by their numbers, from 1
    #[arg(long)]
    no_header: bool,
    /// Refuses a row with an empty key column, where otherwise it matches nothing
    #[arg(long)]
    refuse_empty_keys: bool,
    /// The longest row that is read, in MiB: a longer one is most often an open quote, or a file that unpacks to
    /// far more than it holds
    #[arg(long, value_name = "MIB", default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=65536))]
    max_row: u64,
    /// What happens to cells of a workbook that hold an error, such as #N/A
    #[arg(long, value_enum, default_value = "refuse")]
    error_cells: Errors,
}

/// `--error-cells`, as the command line has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Errors {
    /// The table is refused, with the cell's place
    Refuse,
    /// They count as empty, and a note says how many there are
    Null,
}

impl Dialect {
    /// The options of the library.
    pub(crate) fn options(&self) -> Options {
        Options {
            delimiter: self.delimiter,
            quote: self.quote,
            escape: self.escape,
            header: if self.no_header { Header::None } else { Header::Names },
            empty_keys: if self.refuse_empty_keys { EmptyKeys::Refuse } else { EmptyKeys::Skip },
            max_row: MaxRow::new(self.max_row << 20),
            error_cells: match self.error_cells {
                Errors::Refuse => ErrorCells::Refuse,
                Errors::Null => ErrorCells::Null,
            },
        }
    }
}

/// Reads `--delimiter`.
pub(crate) fn delimiter(text: &str) -> Result<Delimiter, String> {
    match text {
        "auto" => Ok(Delimiter::Auto),
        "tab" | "\\t" => Ok(Delimiter::Byte(b'\t')),
        "\"" => Err("a quote encloses fields; give auto, tab or one other ASCII character".into()),
        _ => byte(text).map(Delimiter::Byte).map_err(|_| "give auto, tab or one ASCII character".into()),
    }
}

fn quote(text: &str) -> Result<Quote, String> {
    match text {
        "none" => Ok(Quote::None),
        "\"" => Ok(Quote::Double),
        _ => byte(text).map(Quote::Byte).map_err(|_| "give none or one ASCII character".into()),
    }
}

fn byte(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        [byte] if byte.is_ascii() && !matches!(byte, b'\r' | b'\n') => Ok(*byte),
        _ => Err("give one ASCII character".into()),
    }
}
