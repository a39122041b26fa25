//! The periods of budgets, in UTC.

use chrono::{Datelike, NaiveDate, NaiveTime};

use crate::model::{BudgetPeriod, Timestamp};

/// The name of an account for the period that a moment is in.
pub(super) fn name(period: BudgetPeriod, at: Timestamp) -> String {
    let text = at.to_string();
    match period {
        BudgetPeriod::Day => text[..10].to_owned(),
        BudgetPeriod::Month => text[..7].to_owned(),
        BudgetPeriod::Total | BudgetPeriod::Unknown => "total".to_owned(),
    }
}

/// The first moment of the period that a moment is in; `None` where it has no beginning.
pub(super) fn start(period: BudgetPeriod, at: Timestamp) -> Option<Timestamp> {
    first_day(period, at).map(midnight)
}

/// The first moment of the next period; `None` where there is none.
pub(super) fn end(period: BudgetPeriod, at: Timestamp) -> Option<Timestamp> {
    let first = first_day(period, at)?;
    let next = match period {
        BudgetPeriod::Day => first.succ_opt(),
        _ => first.checked_add_months(chrono::Months::new(1)),
    };
    next.map(midnight)
}

fn first_day(period: BudgetPeriod, at: Timestamp) -> Option<NaiveDate> {
    let day = at.as_datetime().date_naive();
    match period {
        BudgetPeriod::Day => Some(day),
        BudgetPeriod::Month => day.with_day(1),
        BudgetPeriod::Total | BudgetPeriod::Unknown => None,
    }
}

fn midnight(day: NaiveDate) -> Timestamp {
    Timestamp::from(day.and_time(NaiveTime::MIN).and_utc())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_days_and_months_in_utc() {
        let at: Timestamp = "2026-12-31T23:59:59.999Z".parse().unwrap();
        for (period, named, from, to) in [
            (
                BudgetPeriod::Day,
                "2026-12-31",
                "2026-12-31T00:00:00.000Z",
                "2027-01-01T00:00:00.000Z",
            ),
            (
                BudgetPeriod::Month,
                "2026-12",
                "2026-12-01T00:00:00.000Z",
                "2027-01-01T00:00:00.000Z",
            ),
        ] {
            assert_eq!(name(period, at), named);
            assert_eq!(start(period, at).unwrap().to_string(), from);
            assert_eq!(end(period, at).unwrap().to_string(), to);
        }
        assert_eq!(name(BudgetPeriod::Total, at), "total");
        assert_eq!(
            (start(BudgetPeriod::Total, at), end(BudgetPeriod::Total, at)),
            (None, None)
        );
    }
}
