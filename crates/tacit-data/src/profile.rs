//! Files of sections with names and values, as PostgreSQL's services and AWS's profiles are kept.

use std::path::{Path, PathBuf};

/// The settings of one section of such a file: lines `name = value` below `[section]`. Lines that begin with
/// `#` or `;` say nothing; of indented ones, which AWS nests, neither. Nothing where there is no such
/// section.
pub(crate) fn section(text: &str, wanted: &str) -> Option<Vec<(String, String)>> {
    let (mut found, mut inside) = (None, false);
    for line in text.lines() {
        let plain = line.trim();
        if let Some(name) = plain.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            inside = name.trim() == wanted;
            if inside {
                found.get_or_insert_with(Vec::new);
            }
        } else if inside
            && !line.starts_with([' ', '\t', '#', ';'])
            && let (Some(found), Some((name, value))) = (&mut found, plain.split_once('='))
        {
            found.push((name.trim().to_owned(), value.trim().to_owned()));
        }
    }
    found
}

/// The value of a name in the environment that says something.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// A file of the user's home.
pub(crate) fn at_home(name: &str) -> Option<PathBuf> {
    Some(Path::new(&variable("HOME")?).join(name))
}

#[cfg(test)]
mod tests {
    use super::section;

    #[test]
    fn a_section_is_found_by_its_name() {
        let text = "top=1\n[a]\n x=0\nx = 1\n# y=2\n[profile b]\nx=3\ns3 =\n  y = 4\n[a]\nz=a=b\n[e]\n";
        let of = |name| section(text, name);
        let pairs = |pairs: &[(&str, &str)]| {
            Some(
                pairs
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(of("a"), pairs(&[("x", "1"), ("z", "a=b")]));
        assert_eq!(of("profile b"), pairs(&[("x", "3"), ("s3", "")]));
        assert_eq!(of("e"), pairs(&[]));
        assert_eq!(of("c"), None);
    }
}
