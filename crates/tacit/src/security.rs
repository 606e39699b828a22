//! How the levels of security are called.

use tacit_ot::Security;

/// The name of a security level, as both sides compare it and as results say it.
pub const fn security_name(security: Security) -> &'static str {
    match security {
        Security::SemiHonest => "semi-honest",
        Security::Malicious => "malicious",
    }
}

/// The protocol that evaluates functions at a level: Yao's with half-gates, or cut-and-choose with input recovery.
pub const fn protocol_name(security: Security) -> &'static str {
    match security {
        Security::SemiHonest => "yao",
        Security::Malicious => "wmk17",
    }
}
