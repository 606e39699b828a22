//! Times of a policy and of records: UTC, and nothing else.

use std::time::{SystemTime, UNIX_EPOCH};
pub use tacit::net::calendar::{date, day_of};

const DAY: u64 = 86_400;
/// The days of the week, as a policy writes them, and the one that 1970 began on.
const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const FIRST_DAY: u64 = 3;

/// Seconds since the start of 1970, UTC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Time(pub u64);

/// Tells the time: the machine's, or in tests another.
pub type Clock = dyn Fn() -> Time + Send + Sync;

impl Time {
    /// The system's time.
    pub fn now() -> Self {
        Time(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
    }

    /// Days since the start of 1970.
    pub fn day(self) -> u64 {
        self.0 / DAY
    }

    fn minute(self) -> u64 {
        self.0 % DAY / 60
    }

    /// As `2026-11-23T08:45:00Z`.
    pub fn text(self) -> String {
        let second = self.0 % DAY;
        format!("{}T{:02}:{:02}:{:02}Z", date(self.day()), second / 3600, second / 60 % 60, second % 60)
    }
}

/// Hours of some days of the week in which a job may run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Window {
    days: [bool; 7],
    /// Minutes of the day, the second one left out.
    from: u64,
    to: u64,
}

impl Window {
    /// Reads `Mon-Fri 06:00-20:00`, `Sat 22:00-24:00` or `daily 00:00-06:00`.
    pub fn parse(text: &str) -> Option<Self> {
        let (days, hours) = text.split_once(' ')?;
        let at = |name: &str| DAYS.iter().position(|day| day.eq_ignore_ascii_case(name));
        let days: [bool; 7] = match days.split_once('-') {
            _ if days == "daily" => [true; 7],
            None => {
                let day = at(days)?;
                std::array::from_fn(|i| i == day)
            }
            Some((first, last)) => {
                let (first, last) = (at(first)?, at(last)?);
                // From Saturday to Monday goes over the week's end.
                std::array::from_fn(|i| (i + 7 - first) % 7 <= (last + 7 - first) % 7)
            }
        };
        let minutes = |text: &str| {
            let (hour, minute) = text.split_once(':')?;
            let number = |text: &str| (text.len() == 2).then(|| text.parse::<u64>().ok())?;
            let (hour, minute) = (number(hour)?, number(minute)?);
            (minute < 60 && hour * 60 + minute <= 24 * 60).then_some(hour * 60 + minute)
        };
        let (from, to) = hours.trim().split_once('-')?;
        let (from, to) = (minutes(from)?, minutes(to)?);
        (from < to).then_some(Window { days, from, to })
    }

    /// Whether some of it is on this day, counted from 1970.
    pub fn is_on(&self, day: u64) -> bool {
        self.days[((day % 7 + FIRST_DAY) % 7) as usize]
    }

    /// Whether `time` lies in it.
    pub fn holds(&self, time: Time) -> bool {
        self.is_on(time.day()) && (self.from..self.to).contains(&time.minute())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_go_both_ways() {
        for (text, day) in [("1970-01-01", 0), ("2000-02-29", 11_016), ("2026-11-23", 20_780)] {
            assert_eq!((day_of(text), date(day)), (Some(day), text.to_owned()));
        }
        for day in (0..60_000).step_by(17) {
            assert_eq!(day_of(&date(day)), Some(day));
        }
        for none in
            ["2026-02-29", "2026-13-01", "2026-1-1", "26-01-01", "2026-01-01-01", "1969-12-31", "", "x"]
        {
            assert_eq!(day_of(none), None, "{none}");
        }
        assert_eq!(Time(20_780 * DAY + 3_661).text(), "2026-11-23T01:01:01Z");
        assert!(date(u64::MAX).starts_with("9999-12-"));
    }

    #[test]
    fn windows_hold_their_minutes_and_no_others() {
        // A Monday.
        let at = |day: u64, hour: u64, minute: u64| Time((20_780 + day) * DAY + hour * 3600 + minute * 60);
        let week = Window::parse("Mon-Fri 06:00-20:00").unwrap();
        assert!(week.holds(at(0, 6, 0)) && week.holds(at(4, 19, 59)));
        assert!(!week.holds(at(0, 5, 59)) && !week.holds(at(4, 20, 0)) && !week.holds(at(5, 12, 0)));
        let end = Window::parse("sat-mon 22:00-24:00").unwrap();
        assert!([5, 6, 0].into_iter().all(|day| end.holds(at(day, 23, 59))) && !end.holds(at(1, 23, 0)));
        assert!(Window::parse("daily 00:00-24:00").unwrap().holds(at(3, 0, 0)));
        assert!(Window::parse("Wed 10:00-11:00").unwrap().holds(at(2, 10, 30)));
        for none in ["", "Mon", "Mon 10:00", "Mon 11:00-10:00", "Moon 10:00-11:00", "Mon 10:60-12:00"] {
            assert!(Window::parse(none).is_none(), "{none}");
        }
        assert!(Window::parse("Mon 10:00-24:01").is_none() && Window::parse("Mon 1:00-2:00").is_none());
    }
}
