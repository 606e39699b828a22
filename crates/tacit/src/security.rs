//! How the levels of security are called.

use tacit_ot::Security;

/// The name of a security level, as both sides compare it and as results say it.
pub const fn security_name(security: Security) -> &'static str {
    match security {
        Security::SemiHonest => "semi-honest",
        Security::Malicious => "malicious",
    }
}
