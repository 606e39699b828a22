// The gap between the mean salaries of two firms, in whole euros: positive where the first pays more. A firm
// says how many of its places hold a salary; a firm of nobody makes a division by zero, which the result shows.

const PLACES: usize = 8usize;

fn mean(salaries: [u32; PLACES], people: u32) -> u32 {
    let mut sum = 0u32;
    let mut place = 0u32;
    for salary in salaries {
        if place < people {
            sum = sum + salary;
        }
        place = place + 1u32;
    }
    sum / people
}

pub fn main(
    ours: [u32; PLACES],
    our_people: u32,
    theirs: [u32; PLACES],
    their_people: u32,
) -> i64 {
    mean(ours, our_people) as i64 - mean(theirs, their_people) as i64
}
