//! Every base OT through its trait, over channels.

use crate::base as of_base;
use tacit_ot::{Extraction, base};

#[test]
fn every_protocol_transfers_the_chosen_message_and_no_other() {
    for name in base::NAMES {
        let ot = base::by_name(name).unwrap();
        assert_eq!(ot.name(), name);
        for n in of_base::SIZES {
            of_base::assert_transfers(&*ot, n);
        }
    }
    assert!(base::by_name("none such").is_none());
    assert!(base::NAMES.contains(&base::DEFAULT));
}

#[test]
fn choice_bits_of_another_length_are_the_callers_error() {
    for name in base::NAMES {
        of_base::assert_length_is_checked(&*base::by_name(name).unwrap());
    }
}

#[test]
fn a_peer_that_leaves_is_an_error() {
    for name in base::NAMES {
        of_base::assert_a_leaving_peer_is_noticed(&*base::by_name(name).unwrap());
    }
}

#[test]
fn what_extracts_late_is_named() {
    for name in base::NAMES {
        let ot = base::by_name(name).unwrap();
        let late = [base::co15::NAME, base::roted::NAME].contains(&name);
        assert_eq!(ot.extraction() == Extraction::Late, late, "{name}");
    }
}
