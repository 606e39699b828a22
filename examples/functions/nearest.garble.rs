// Which of a company's k places is nearest to a customer? The customer learns the number of the place and how far
// it is, squared; the company nothing of where the customer is, if the result goes to the customer alone.

struct Point {
    x: i16,
    y: i16,
}

const PLACES: usize = 6usize;

fn squared(a: Point, b: Point) -> u64 {
    let dx = a.x as i64 - b.x as i64;
    let dy = a.y as i64 - b.y as i64;
    (dx * dx + dy * dy) as u64
}

pub fn main(places: [Point; PLACES], customer: Point) -> (u8, u64) {
    let mut best = squared(places[0], customer);
    let mut nearest = 0u8;
    let mut place = 0u8;
    for point in places {
        let distance = squared(point, customer);
        if distance < best {
            best = distance;
            nearest = place;
        }
        place = place + 1u8;
    }
    (nearest, best)
}
