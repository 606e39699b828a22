//! Which of the settings that two sides gave differently their users are told.

use super::identifiers;
use crate::job::agreed;
use tacit_net::Difference;

/// The setting that binds everything about keys.
pub(super) const KEYS: &str = "version of keys";
/// The setting that says how rows are folded, where the result is one that may be.
pub(super) const FOLDS: &str = "version of folds";

/// How the settings begin that are parts of a question's text.
pub(in crate::job) const QUESTION: &str = "question";

/// The differences that a user can do something about: those that only follow from others are left out.
pub(crate) fn causes(mut differences: Vec<Difference>) -> Vec<Difference> {
    const OF_TEXT: [&str; 3] = ["case-fold", "nfc", "trim"];
    identifiers::causes(&mut differences);
    let is_of_keys = |name: &str| identifiers::is_of_keys(name) || OF_TEXT.contains(&name);
    if differences.iter().any(|one| is_of_keys(&one.setting)) {
        differences.retain(|one| one.setting != KEYS);
    }
    // Where the texts begin to differ; what comes behind is moved.
    let mut is_first = true;
    differences.retain(|one| !one.setting.starts_with(QUESTION) || std::mem::take(&mut is_first));
    if differences.iter().any(|one| one.setting == "reveal") {
        differences.retain(|one| one.setting != FOLDS);
    }
    if let Some(at) = differences.iter().position(|one| one.setting == KEYS) {
        let Difference { ours, theirs, .. } = &differences[at];
        let parts = agreed::differences(ours.as_deref().unwrap_or(""), theirs.as_deref().unwrap_or(""));
        differences.splice(at..=at, parts);
    }
    // One side alone runs in buckets: all that is said of them follows from that.
    let is_buckets = |value: &Option<String>| value.as_deref() == Some(super::buckets::ON_DISK);
    if let Some(sets) = differences.iter_mut().find(|one| one.setting == "sets") {
        let given = |value: &Option<String>| is_buckets(value).then(|| "given".to_owned());
        if sets.ours.is_none() || sets.theirs.is_none() {
            (sets.ours, sets.theirs) = (given(&sets.ours), given(&sets.theirs));
            "memory".clone_into(&mut sets.setting);
            differences.retain(|one| one.setting != "resume" && one.setting != "channels");
        }
    }
    differences
}
