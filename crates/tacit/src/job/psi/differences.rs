//! Which of the settings that two sides gave differently their users are told.

use crate::job::agreed;
use tacit_net::Difference;

/// The setting that binds everything about keys.
pub(super) const KEYS: &str = "version of keys";
/// The setting that says how rows are folded, where the result is one that may be.
pub(super) const FOLDS: &str = "version of folds";

/// The differences that a user can do something about: those that only follow from others are left out.
pub(crate) fn causes(mut differences: Vec<Difference>) -> Vec<Difference> {
    const OF_KEYS: [&str; 6] = ["key columns", "key types", "key labels", "case-fold", "nfc", "trim"];
    if differences.iter().any(|one| OF_KEYS.contains(&one.setting.as_str())) {
        differences.retain(|one| one.setting != KEYS);
    }
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
