//! What the fuzzer and its replay call: parsers that are not public.

use crate::http::parsed;

/// Reads the head of a request, as it came from a browser or from whoever else.
///
/// Panics if what was read is not what a route may rely on.
pub fn head(bytes: &[u8]) {
    let Some(head) = parsed(bytes) else { return };
    assert_eq!(parsed(bytes).as_ref(), Some(&head), "a head is read the same twice");
    assert!(head.path.starts_with('/') && !head.path.contains('?'), "a path is one");
    assert!(
        head.header("host").is_some() && !head.has("transfer-encoding"),
        "a request can be read in one way"
    );
    let length = head.header("content-length").unwrap_or("0");
    assert_eq!(length.parse(), Ok(head.length), "a body is as long as the head says");
    for name in ["id", "name"] {
        if let Some(value) = head.asked(name) {
            assert!(value.len() <= head.query.len(), "a value is no longer than the query");
        }
    }
}
