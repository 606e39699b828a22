//! Calls that may panic and must not end the process: into parsers of formats that other people designed, and
//! the work of one visitor of a service.
//!
//! A panic behind the fence is a value, which names the place in the source and nothing else: the message of
//! a panic may quote the data it stumbled over. The hook that prints panics is silent for it.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::{AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;

thread_local! {
    /// Fences around what this thread does now.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// Where the latest panic behind a fence of this thread was.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

static HOOK: Once = Once::new();

/// That fenced work panicked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Panicked {
    /// File and line of the source, without the folders of the machine that compiled it.
    pub place: String,
}

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "internal fault at {}", self.place)
    }
}

impl std::error::Error for Panicked {}

/// Does `work` on this thread. What it holds is dropped when it panics; what it only borrows may be half
/// changed then, and is not to be used again.
///
/// ```
/// use tacit_crypto::fence::fenced;
/// assert_eq!(fenced(|| 7), Ok(7));
/// let failed = fenced(|| [1, 2].map(|n: usize| 10 / n.saturating_sub(1))).unwrap_err();
/// assert!(failed.to_string().starts_with("internal fault at "));
/// ```
pub fn fenced<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !is_caught(info) {
                before(info);
            }
        }));
    });
    DEPTH.set(DEPTH.get() + 1);
    let done = std::panic::catch_unwind(AssertUnwindSafe(work));
    DEPTH.set(DEPTH.get() - 1);
    // What is thrown is forgotten, not dropped: nobody vouches for what its destructor does.
    done.map_err(|thrown| {
        std::mem::forget(thrown);
        Panicked { place: PLACE.take() }
    })
}

/// Whether a fence of this thread catches the panic that a hook hears of. A hook that another one replaces
/// this module's by asks this first, and is silent if so.
pub fn is_caught(info: &PanicHookInfo<'_>) -> bool {
    let caught = DEPTH.get() > 0;
    if caught {
        PLACE.set(place(info));
    }
    caught
}

/// Where a panic was: the last three parts of the file's path, and the line.
pub fn place(info: &PanicHookInfo<'_>) -> String {
    let Some(location) = info.location() else { return "an unknown place".to_owned() };
    let parts: Vec<&str> = location.file().split(['/', '\\']).collect();
    let last = parts.len().saturating_sub(3);
    format!("{}:{}", parts[last..].join("/"), location.line())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_value_that_names_the_place_and_not_the_data() {
        let secret = "4711 Elm Street".to_owned();
        let failed = fenced(|| {
            if secret.len() > 3 {
                panic!("cell {secret}")
            }
        })
        .unwrap_err();
        assert!(failed.place.contains("src/fence.rs:"), "{failed}");
        assert!(!format!("{failed} {failed:?}").contains("Elm"), "{failed}");
        assert!(!failed.place.starts_with('/'), "{failed}");
        // The thread goes on, and a fence within a fence catches its own.
        let inner = fenced(|| fenced(|| Vec::<u8>::new()[1]).unwrap_err().place).unwrap();
        assert!(inner.contains("src/fence.rs:"), "{inner}");
        assert_eq!(DEPTH.get(), 0);
    }

    #[test]
    fn what_no_fence_catches_goes_its_way() {
        let outer = fenced(|| std::thread::spawn(|| Vec::<u8>::new()[1]).join().is_err());
        assert_eq!(outer, Ok(true));
    }
}
