//! Who may ask for a job, how often and when: what jobs of every kind have.

use super::near;
use super::reader::{At, Section};
use super::{Known, MANY};
use crate::clock::{Window, day_of};

/// Who may ask for a job, how often and when.
#[derive(Clone, PartialEq, Debug)]
pub struct Gate {
    /// Labels of those who may ask.
    pub allow: Vec<String>,
    /// Runs of this job that one peer may start a day, UTC.
    pub runs_a_day: u64,
    /// When runs may start; always if empty.
    pub hours: Vec<Window>,
    /// The same as it stands in the file.
    pub hours_text: Vec<String>,
    /// Requests of this job served at once.
    pub concurrency: u64,
    /// What a run is for, for the record.
    pub purpose: Option<String>,
    /// The contract it rests on, for the record.
    pub agreement: Option<String>,
    /// The last day on which runs may start, as text and counted from 1970.
    pub expires: Option<(String, u64)>,
}

impl Gate {
    /// Whether the peer of this label may ask.
    pub fn allows(&self, label: &str) -> bool {
        self.allow.iter().any(|allowed| allowed == label)
    }

    /// Whether a run may start at some time of this day, counted from 1970.
    pub fn opens_on(&self, day: u64) -> bool {
        self.hours.is_empty() || self.hours.iter().any(|window| window.is_on(day))
    }

    /// What a job's section says of it.
    pub(super) fn read(section: &mut Section<'_, '_, '_>, known: &Known<'_>) -> Option<Self> {
        let allow = section.wanted_list("allow");
        for At { value, at } in &allow {
            if !known.labels.contains(value) {
                section.fault(
                    *at,
                    format!(
                        "`allow`: there is no [peers.{}]{}",
                        tacit::net::shown(value),
                        near(value, known.labels)
                    ),
                );
            }
        }
        let runs_a_day = section.wanted_number("runs_a_day", 0..=MANY);
        let (mut hours, mut hours_text) = (Vec::new(), Vec::new());
        for At { value, at } in section.list("hours") {
            match Window::parse(&value) {
                Some(window) => {
                    hours.push(window);
                    hours_text.push(value);
                }
                None => section.fault(
                    at,
                    "`hours`: write Mon-Fri 06:00-20:00, Sat 22:00-24:00 or daily 00:00-06:00 (UTC)",
                ),
            }
        }
        let concurrency = section.number("concurrency", 1..=256).unwrap_or(256);
        let purpose = section.text("purpose").map(|said| said.value);
        let agreement = section.text("agreement").map(|said| said.value);
        let expires = section.text("expires").and_then(|said| {
            let day = day_of(&said.value);
            if day.is_none() {
                section.fault(said.at, "`expires` must be a date, year first: expires = 2027-12-31");
            }
            day.map(|day| (said.value, day))
        });
        Some(Gate {
            allow: allow.into_iter().map(|label| label.value).collect(),
            runs_a_day: runs_a_day?,
            hours,
            hours_text,
            concurrency,
            purpose,
            agreement,
            expires,
        })
    }
}
