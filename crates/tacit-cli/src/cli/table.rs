//! How a table is read: the options that every subcommand with a table has.

use tacit::data::csv::{Delimiter, EmptyKeys, Encoding, ErrorCells, Header, MaxRow, Options, Quote};

/// How our table is written, and which rows have a key.
#[derive(clap::Args, Clone, Copy)]
pub(crate) struct Dialect {
    #[command(flatten)]
    written: Written,
    /// Rejects a table with an empty key column in a row, which otherwise matches nothing; with --or-key in a
    /// row that has none of the identifiers
    #[arg(long)]
    refuse_empty_keys: bool,
}

/// How our table is written.
#[derive(clap::Args, Clone, Copy)]
pub(crate) struct Written {
    /// The separator of the fields of your file: one character, or auto for the most frequent of , ; | and
    /// tab
    #[arg(long, value_name = "CHAR", default_value = "auto", value_parser = delimiter)]
    delimiter: Delimiter,
    /// The quote around fields with a separator: one character, or none if fields are never quoted
    #[arg(long, value_name = "CHAR", default_value = "\"", value_parser = quote)]
    quote: Quote,
    /// The escape character before a quote in a field, such as \, if quotes are not doubled; with --quote
    /// none, the one before a separator or a line end that is part of a field
    #[arg(long, value_name = "CHAR", value_parser = byte)]
    escape: Option<u8>,
    /// The first line of your file is data; columns are then named by their numbers, from 1
    #[arg(long)]
    no_header: bool,
    /// The encoding of your file, such as windows-1252 or utf-16le, if it is not UTF-8; outputs are UTF-8
    #[arg(long, value_name = "NAME", value_parser = encoding)]
    encoding: Option<Encoding>,
    /// Skips the first N lines of your CSV file, or rows of your sheet; the header comes after them
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip_lines: u64,
    /// Amounts in your CSV file that are computed on (COL:decimalN) have a comma before the fraction
    #[arg(long)]
    decimal_comma: bool,
    /// Reads untyped Parquet columns of bytes as text
    #[arg(long)]
    binary_as_text: bool,
    /// The longest row that is read, in MiB: the cause of a longer one is usually an open quote, or a file
    /// that decompresses to far more than its size
    #[arg(long, value_name = "MIB", default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=65536))]
    max_row: u64,
    /// What happens to cells of a workbook with an error, such as #N/A
    #[arg(long, value_enum, default_value = "refuse")]
    error_cells: Errors,
}

/// `--error-cells`, as the command line has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Errors {
    /// The table is rejected, with the cell's position
    Refuse,
    /// They count as empty, and a note has their number
    Null,
}

impl Dialect {
    /// Options that differ from the usual ones, as they stand on a command line.
    pub(crate) fn words_of(&self, own: &Options) -> Vec<String> {
        let mut words = Written::words(own);
        if self.refuse_empty_keys {
            words.push("--refuse-empty-keys".to_owned());
        }
        words
    }

    /// The options of the library.
    pub(crate) fn options(&self) -> Options {
        let empty_keys = if self.refuse_empty_keys { EmptyKeys::Refuse } else { EmptyKeys::Skip };
        Options { empty_keys, ..self.written.options() }
    }
}

impl Written {
    /// Whether nothing was said of it.
    pub(crate) fn is_usual(&self) -> bool {
        self.options() == Options::default()
    }

    /// Options that differ from the usual ones, as they stand on a command line.
    fn words(own: &Options) -> Vec<String> {
        let usual = Options::default();
        let char = |byte: u8| char::from(byte).to_string();
        let delimiter = match own.delimiter {
            Delimiter::Byte(b'\t') => Some("tab".to_owned()),
            Delimiter::Byte(byte) => Some(char(byte)),
            _ => None,
        };
        let quote = match own.quote {
            Quote::None => Some("none".to_owned()),
            Quote::Byte(byte) => Some(char(byte)),
            _ => None,
        };
        let value = |name: &str, value: Option<String>| value.map(|value| vec![name.to_owned(), value]);
        let flag = |name: &str, is_given: bool| is_given.then(|| vec![name.to_owned()]);
        let differs = |is_other: bool, text: String| is_other.then_some(text);
        [
            value("--delimiter", delimiter),
            value("--quote", quote),
            value("--escape", own.escape.map(char)),
            flag("--no-header", own.header == Header::None),
            value("--encoding", own.encoding.map(|encoding| encoding.name().to_owned())),
            value("--skip-lines", differs(own.skip_lines != usual.skip_lines, own.skip_lines.to_string())),
            flag("--decimal-comma", own.decimal_comma),
            flag("--binary-as-text", own.binary_as_text),
            value(
                "--max-row",
                differs(own.max_row != usual.max_row, (own.max_row.bytes() >> 20).to_string()),
            ),
            value("--error-cells", differs(own.error_cells != usual.error_cells, "null".to_owned())),
        ]
        .into_iter()
        .flatten()
        .flatten()
        .collect()
    }

    /// The options of the library.
    pub(crate) fn options(&self) -> Options {
        Options {
            delimiter: self.delimiter,
            quote: self.quote,
            escape: self.escape,
            header: if self.no_header { Header::None } else { Header::Names },
            empty_keys: EmptyKeys::Skip,
            encoding: self.encoding,
            skip_lines: self.skip_lines,
            decimal_comma: self.decimal_comma,
            binary_as_text: self.binary_as_text,
            max_row: MaxRow::new(self.max_row << 20),
            error_cells: match self.error_cells {
                Errors::Refuse => ErrorCells::Refuse,
                Errors::Null => ErrorCells::Null,
            },
        }
    }
}

fn encoding(name: &str) -> Result<Encoding, String> {
    let unknown =
        || "give a name that browsers know, such as windows-1252, iso-8859-15 or utf-16le".to_owned();
    Encoding::named(name).ok_or_else(unknown)
}

fn delimiter(text: &str) -> Result<Delimiter, String> {
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
