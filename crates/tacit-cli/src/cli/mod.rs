//! What every subcommand shares: the configuration file, the peer's options, plans, shares and messages in
//! files, and whom a run waits for.

pub(crate) mod config;
pub(crate) mod files;
pub(crate) mod help;
pub(crate) mod keys;
pub(crate) mod messages;
pub(crate) mod own;
mod pdf;
pub(crate) mod peer;
pub(crate) mod plan;
pub(crate) mod report;
pub(crate) mod results;
pub(crate) mod share;
pub(crate) mod table;
pub(crate) mod verbose;
pub(crate) mod waiting;

/// A whole number or a fraction that stands for so many `digits` behind the point: `1275` of 2 is `12.75`.
pub(crate) fn amount(number: &str, digits: u32) -> String {
    let (sign, number) = number.strip_prefix('-').map_or(("", number), |rest| ("-", rest));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_plain =
        !whole.is_empty() && [whole, fraction].iter().all(|part| part.bytes().all(|b| b.is_ascii_digit()));
    if digits == 0 || !is_plain {
        return format!("{sign}{number}");
    }
    let digits = digits as usize;
    let whole = format!("{whole:0>width$}", width = digits + 1);
    let (before, after) = whole.split_at(whole.len() - digits);
    format!("{sign}{before}.{after}{}", if fraction == "0" { "" } else { fraction })
}

pub(crate) use tacit_console::{Context, fault, output, progress};
