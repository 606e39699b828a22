//! What every subcommand shares: the configuration file, the peer's options, plans, shares and messages in
//! files, and whom a run waits for.

pub(crate) mod config;
pub(crate) mod files;
pub(crate) mod help;
pub(crate) mod identifiers;
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

use tacit::data::values::decimal;

/// Digits of a mean behind those that its numbers have.
const MEAN_DIGITS: u32 = 6;

/// The mean of `rows` numbers with that sum, which have so many digits behind the point: exact, and rounded to a few
/// digits more.
pub(crate) fn mean(sum: i128, rows: u64, digits: u32) -> String {
    let (rows, scale) = (u128::from(rows.max(1)), 10u128.pow(MEAN_DIGITS));
    let (mut whole, rest) = (sum.unsigned_abs() / rows, sum.unsigned_abs() % rows);
    // Half a digit more rounds it.
    let mut fraction = (2 * rest * scale + rows) / (2 * rows);
    if fraction == scale {
        (whole, fraction) = (whole + 1, 0);
    }
    let sign = if sum < 0 && (whole, fraction) != (0, 0) { "-" } else { "" };
    let shown = decimal((whole * scale + fraction) as i128, digits + MEAN_DIGITS);
    let least = shown.find('.').map_or(0, |point| point + 1 + digits as usize);
    let kept = shown.trim_end_matches('0').len().max(least);
    format!("{sign}{}", shown[..kept].trim_end_matches('.'))
}

pub(crate) use tacit_console::{Context, fault, output, progress};

#[cfg(test)]
mod tests {
    use super::mean;

    #[test]
    fn a_mean_is_exact_and_rounded_to_a_few_digits() {
        for (sum, rows, digits, shown) in [
            (9_223_372_036_854_775_808, 3, 2, "30744573456182586.02666667"),
            (9, 2, 0, "4.5"),
            (12, 3, 0, "4"),
            (12, 3, 2, "0.04"),
            (100, 1, 2, "1.00"),
            (-7, 2, 0, "-3.5"),
            (-1, 3, 0, "-0.333333"),
            (2, 3, 0, "0.666667"),
            (1_999_999_999, 1_000_000_000, 0, "2"),
            (0, 5, 0, "0"),
        ] {
            assert_eq!(mean(sum, rows, digits), shown, "{sum} of {rows}");
        }
    }
}
