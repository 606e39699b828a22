//! The noise of a question's measures, and which results can be rounded.

use super::Planner;
use crate::fault::{Fault, Result, counted, fail, quoted};
use crate::noise::thresholds;
use crate::question::{Measure, Output};
use crate::range::{BOUNDED_ROWS, TooWide, fits};
use crate::read::epsilon_text;
use crate::value::power;

/// Words that the noise of all groups is drawn from, at most: each is some 64 AND gates.
const MOST_WORDS: usize = 1 << 14;
/// What an epsilon is in.
const MILLION: u128 = 1_000_000;

impl Planner {
    /// What each measure is rounded to multiples of.
    ///
    /// Errors where the result has something that no number is a multiple of.
    pub(super) fn rounding(&self, outputs: &[(String, Output)]) -> Result<Vec<i128>> {
        let Some(step) = self.end.step else { return Ok(vec![]) };
        let is_date = |(_, output): &&(String, Output)| matches!(output, Output::Date(_));
        if let Some((name, _)) = outputs.iter().find(is_date) {
            let name = quoted(name);
            return fail(format!("ROUND TO is for numbers, and {name} is a date; leave one of them out"));
        }
        let unit = |scale: &u8| {
            let unit = power(*scale).and_then(|unit| unit.checked_mul(step.into()));
            unit.filter(|unit| fits((-*unit, *unit)).is_ok()).ok_or_else(|| {
                Fault::new(format!(
                    "ROUND TO {step} is more than numbers with {scale} digits after the point can be; write fewer digits"
                ))
            })
        };
        self.scales.iter().map(unit).collect()
    }

    /// The thresholds of every measure of so many groups; see [`Question::noise`](crate::Question::noise).
    ///
    /// A key is in one row of one group at most, so that each measure has its share of epsilon in every group.
    pub(super) fn noise(&self, groups: usize) -> Result<Vec<Vec<u64>>> {
        let Some(epsilon) = self.end.epsilon else { return Ok(vec![]) };
        let each = self.measures.iter().map(|measure| self.noise_of(measure, epsilon));
        let all = each.collect::<Result<Vec<_>>>()?;
        let words = all.iter().map(|digits| 2 * digits.len()).sum::<usize>().saturating_mul(groups);
        if words > MOST_WORDS {
            return fail(format!(
                "noise for {} of {} is drawn from {}, and {MOST_WORDS} are the most; ask for fewer groups or \
                 numbers, narrower bounds, or a larger EPSILON",
                counted(all.len(), "number"),
                counted(groups, "group"),
                counted(words, "word")
            ));
        }
        Ok(all)
    }

    fn noise_of(&self, measure: &Measure, epsilon: u64) -> Result<Vec<u64>> {
        let Some(change) = measure.change(&self.fields) else {
            return fail(
                "MIN and MAX are the value of one row, which no noise hides; leave them out, or leave out WITH NOISE",
            );
        };
        let under = change.checked_mul(MILLION).and_then(|all| all.checked_mul(self.measures.len() as u128));
        let drawn = match under {
            Some(0) => Some(vec![]),
            under => under.and_then(|under| thresholds(epsilon.into(), under)),
        };
        let wide = || -> std::result::Result<Vec<u64>, TooWide> {
            let digits = drawn.ok_or(TooWide)?;
            let end = 1i128 << digits.len();
            let (least, most) = measure.fitting_range(&self.fields, BOUNDED_ROWS)?.unwrap_or((0, 0));
            fits((least - end, most + end)).map(|_| digits)
        };
        wide().map_err(|TooWide| {
            Fault::new(format!(
                "the noise of EPSILON {} may leave 100 bits; write a larger one, or narrower bounds in CLIP",
                epsilon_text(epsilon)
            ))
        })
    }
}
