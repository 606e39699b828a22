// A sealed auction of two houses for one lot: each brings its bidders' offers, and the winner pays the second
// price. A lot below the reserve, which the first house knows, is not sold.

struct House {
    offers: [u32; 4],
}

struct Seller {
    reserve: u32,
    offers: [u32; 4],
}

enum Outcome {
    Unsold,
    // The winner's place, the first house's offers counted first, and the price.
    Sold(u8, u32),
}

pub fn main(first: Seller, second: House) -> Outcome {
    let mut best = 0u32;
    let mut price = first.reserve;
    let mut winner = 0u8;
    let mut place = 0u8;
    for offer in first.offers {
        if offer > best {
            if best > price {
                price = best;
            }
            best = offer;
            winner = place;
        } else if offer > price {
            price = offer;
        }
        place = place + 1u8;
    }
    for offer in second.offers {
        if offer > best {
            if best > price {
                price = best;
            }
            best = offer;
            winner = place;
        } else if offer > price {
            price = offer;
        }
        place = place + 1u8;
    }
    if best < first.reserve {
        Outcome::Unsold
    } else {
        Outcome::Sold(winner, price)
    }
}
