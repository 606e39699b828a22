//! Days and dates, UTC.

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds of a day.
const DAY: u64 = 86_400;

/// Today, in days since the start of 1970.
pub fn today() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() / DAY
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_of(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The date of a day, as `2026-11-23`; the year 9999 stands for all that come after it.
pub fn date(mut day: u64) -> String {
    let mut year = 1970;
    while year < 9999 {
        let length = if is_leap(year) { 366 } else { 365 };
        if day < length {
            break;
        }
        day -= length;
        year += 1;
    }
    let mut month = 1;
    while month < 12 && day >= days_of(year, month) {
        day -= days_of(year, month);
        month += 1;
    }
    format!("{year:04}-{month:02}-{:02}", (day + 1).min(31))
}

/// The day that `2026-11-23` names, counted from the start of 1970.
pub fn day_of(date: &str) -> Option<u64> {
    let mut parts = date.split('-');
    let mut number = |length: usize| {
        let part = parts.next().filter(|part| part.len() == length)?;
        part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse::<u64>().ok())?
    };
    let (year, month, day) = (number(4)?, number(2)?, number(2)?);
    let fits = (1970..9999).contains(&year) && (1..=12).contains(&month);
    if parts.next().is_some() || !fits || !(1..=days_of(year, month)).contains(&day) {
        return None;
    }
    let before: u64 = (1970..year).map(|year| if is_leap(year) { 366 } else { 365 }).sum();
    Some(before + (1..month).map(|month| days_of(year, month)).sum::<u64>() + day - 1)
}
