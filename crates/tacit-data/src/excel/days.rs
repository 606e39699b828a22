//! How Excel counts days.

/// Milliseconds of a day.
pub(super) const MILLIS_A_DAY: i64 = 86_400_000;
/// The day 1970-01-01, as Excel counts from 1900 on, and as it does from 1904 on.
const EPOCH_SERIALS: [i64; 2] = [25_569, 24_107];
/// The day that Excel counts and no calendar has: 1900-02-29.
const NO_DAY: i64 = 60;
/// Days behind the last of the year 9999.
const END: i64 = 2_958_466;

/// Milliseconds since 1970 of a count of days; nothing where it is of no day that the calendar has, or of a
/// time without a day.
pub(super) fn moment(serial: f64, since_1904: bool) -> Option<i64> {
    if !(serial.is_finite() && serial < END as f64 && serial >= if since_1904 { 0.0 } else { 1.0 }) {
        return None;
    }
    let millis = (serial * MILLIS_A_DAY as f64).round() as i64;
    let (day, time) = (millis.div_euclid(MILLIS_A_DAY), millis.rem_euclid(MILLIS_A_DAY));
    let since = match (since_1904, day) {
        (true, day) => day - EPOCH_SERIALS[1],
        (false, NO_DAY) => return None,
        // Before the day that is none, the count is one short.
        (false, day) => day - EPOCH_SERIALS[0] + i64::from(day < NO_DAY),
    };
    Some(since * MILLIS_A_DAY + time)
}

/// A time without a day, or a span: hours, minutes, seconds, and thousandths where there are some.
pub(super) fn time(serial: f64) -> Option<String> {
    let millis = (serial * MILLIS_A_DAY as f64).round();
    if millis.is_nan() || millis.abs() >= 1e15 {
        return None;
    }
    let (sign, millis) = (if millis < 0.0 { "-" } else { "" }, millis.abs() as u64);
    let (seconds, rest) = (millis / 1000, millis % 1000);
    let text = format!("{sign}{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    Some(if rest == 0 { text } else { format!("{text}.{rest:03}") })
}

/// The count of days, as Excel has it, of milliseconds since 1970; nothing before March 1900, from when on it is
/// the same everywhere, and behind 9999.
pub(super) fn serial(millis: i64) -> Option<f64> {
    let day = millis.div_euclid(MILLIS_A_DAY) + EPOCH_SERIALS[0];
    (day > NO_DAY && day < END)
        .then(|| day as f64 + millis.rem_euclid(MILLIS_A_DAY) as f64 / MILLIS_A_DAY as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_as_excel_does() {
        let days = |serial, since| moment(serial, since).map(|millis| millis as f64 / MILLIS_A_DAY as f64);
        assert_eq!(days(25_569.0, false), Some(0.0));
        assert_eq!(days(61.0, false), Some(-25_508.0)); // 1900-03-01
        assert_eq!(days(59.0, false), Some(-25_509.0)); // 1900-02-28
        assert_eq!(days(1.0, false), Some(-25_567.0)); // 1900-01-01
        assert_eq!(days(60.0, false), None);
        assert_eq!(days(0.5, false), None);
        assert_eq!(days(0.0, true), Some(-24_107.0)); // 1904-01-01
        assert_eq!(days(45_292.25, false), Some(19_723.25));
        assert_eq!(days(2_958_465.0, false), Some(2_932_896.0)); // 9999-12-31
        assert_eq!((days(2_958_466.0, false), days(f64::NAN, false)), (None, None));
        assert_eq!(time(0.5).unwrap(), "12:00:00");
        assert_eq!(time(1.5).unwrap(), "36:00:00");
        assert_eq!(time(1.0 / 86_400_000.0).unwrap(), "00:00:00.001");
        for millis in
            [0, MILLIS_A_DAY / 4, -25_508 * MILLIS_A_DAY, 2_932_896 * MILLIS_A_DAY + MILLIS_A_DAY - 1000]
        {
            assert_eq!(moment(serial(millis).unwrap(), false), Some(millis));
        }
        assert_eq!(serial(-25_509 * MILLIS_A_DAY), None);
    }
}
