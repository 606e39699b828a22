// A bank's secret rule on an applicant's secret figures. Both learn the decision, the bank no figure, and the
// applicant no limit.

enum Work {
    None,
    Employed(u8),
    SelfEmployed(u8),
}

struct Applicant {
    income: u32,
    debts: u32,
    work: Work,
    defaulted: bool,
}

struct Rule {
    least_income: u32,
    // Debts that are allowed, in percent of the income.
    most_debts: u32,
    // Years of work that are asked for: of the employed, and of the self-employed.
    years: (u8, u8),
}

enum Decision {
    Refused,
    Granted(u32),
}

pub fn main(rule: Rule, applicant: Applicant) -> Decision {
    let settled = match applicant.work {
        Work::Employed(years) => years >= rule.years.0,
        Work::SelfEmployed(years) => years >= rule.years.1,
        Work::None => false,
    };
    let allowed = applicant.income as u64 * rule.most_debts as u64 / 100u64;
    let bears = applicant.debts as u64 <= allowed;
    if settled && bears && !applicant.defaulted && applicant.income >= rule.least_income {
        Decision::Granted(applicant.income / 2u32)
    } else {
        Decision::Refused
    }
}
