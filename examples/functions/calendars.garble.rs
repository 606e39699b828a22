// When can two people meet? Each marks the half hours of a day that are free; both learn the first stretch of
// two that suits both, and nothing else of the calendars.

const SLOTS: usize = 24usize;

enum Meeting {
    Never,
    // The number of the half hour it begins with, the day's first being 0.
    At(usize),
}

pub fn main(mine: [bool; SLOTS], yours: [bool; SLOTS]) -> Meeting {
    let mut found = Meeting::Never;
    let mut open = true;
    for slot in 0usize..23usize {
        let both = (mine[slot] & yours[slot]) & (mine[slot + 1usize] & yours[slot + 1usize]);
        if both & open {
            found = Meeting::At(slot);
            open = false;
        }
    }
    found
}
