//! Words of a job's section that mean one of several things.

use super::Known;
use super::reader::{At, Section};
use tacit::crypto::near::{nearest, one_of};
use tacit::job::psi::Learns;

/// The name that was meant, where one is near.
pub(super) fn near(wanted: &str, names: &[String]) -> String {
    let found = nearest(wanted, names.iter().map(String::as_str));
    found.map_or_else(String::new, |name| format!("; did you mean `{}`?", tacit::net::shown(name)))
}

/// The word's meaning out of a table of words, or a fault that lists them.
pub(super) fn word<T: Copy>(
    section: &mut Section<'_, '_, '_>,
    key: &str,
    said: &At<String>,
    words: &[(&str, T)],
) -> Option<T> {
    let found = words.iter().find(|(name, _)| *name == said.value).map(|(_, value)| *value);
    if found.is_none() {
        let what = format!(
            "`{key}`: there is no `{}`; {}",
            tacit::net::shown(&said.value),
            one_of(&said.value, words.iter().map(|(name, _)| *name))
        );
        section.fault(said.at, what);
    }
    found
}

/// The name of a job's source.
pub(super) fn source_name(section: &mut Section<'_, '_, '_>, known: &Known<'_>) -> Option<At<String>> {
    let said = section.wanted_text("source")?;
    if !known.source_names.contains(&said.value) {
        let (name, near) = (tacit::net::shown(&said.value), near(&said.value, known.source_names));
        section.fault(said.at, format!("`source`: there is no [sources.{name}]{near}"));
    }
    Some(said)
}

/// Who may get a job's result.
pub(super) fn results(section: &mut Section<'_, '_, '_>) -> Vec<Learns> {
    let sides = [("me", Learns::Me), ("peer", Learns::Peer), ("both", Learns::Both)];
    let said = section.wanted_list("result");
    said.iter().filter_map(|said| word(section, "result", said, &sides)).collect()
}
