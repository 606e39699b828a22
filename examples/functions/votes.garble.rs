// Two polling stations count together: how many votes did each candidate get, and who leads? Neither station's
// own count is shown. A ballot is the candidate's number, or `blank`.

enum Ballot {
    Blank,
    For(u8),
}

const BALLOTS: usize = 10usize;

fn counted(ballots: [Ballot; BALLOTS], before: [u16; 3]) -> [u16; 3] {
    let mut count = before;
    for ballot in ballots {
        match ballot {
            Ballot::For(candidate) => {
                if candidate < 3u8 {
                    count[candidate as usize] = count[candidate as usize] + 1u16;
                }
            }
            Ballot::Blank => {}
        }
    }
    count
}

pub fn main(first: [Ballot; BALLOTS], second: [Ballot; BALLOTS]) -> [u16; 3] {
    counted(second, counted(first, [0u16; 3]))
}
