//! Prices of models and amounts of money, in exact integers.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::body::{FromJson, mismatch};
use crate::json::Json;
use crate::validate::Faults;

/// A price in USD per million tokens, with at most 3 decimals, up to 1,000,000.
///
/// A thousandth of a USD per million tokens is a billionth of a USD per token, so costs are products of integers.
///
/// ```
/// use agentcfg_core::model::Price;
/// let price: Price = "0.075".parse()?;
/// assert_eq!(price.nano_usd_per_token(), 75);
/// assert_eq!(price.to_string(), "0.075");
/// # Ok::<(), agentcfg_core::model::InvalidAmount>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Price(u32);

/// An amount in USD with at most 9 decimals.
///
/// It is written as a decimal text without trailing zeros, and read from such a text or from a number.
///
/// ```
/// use agentcfg_core::model::Usd;
/// let amount: Usd = "1.50".parse()?;
/// assert_eq!(amount.nanos(), 1_500_000_000);
/// assert_eq!(amount.to_string(), "1.5");
/// assert_eq!(Usd::from_nanos(42).to_string(), "0.000000042");
/// # Ok::<(), agentcfg_core::model::InvalidAmount>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Usd(u128);

/// Why a text is no [`Price`] or [`Usd`].
///
/// ```
/// use agentcfg_core::model::{InvalidAmount, Price};
/// assert_eq!("0.0001".parse::<Price>(), Err(InvalidAmount::Decimals(3)));
/// assert_eq!("-1".parse::<Price>(), Err(InvalidAmount::Form));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidAmount {
    /// It is no decimal number without sign and exponent.
    #[error("must be a decimal number such as 2.5, not negative and without an exponent")]
    Form,
    /// It has more decimals than this.
    #[error("must have at most {0} decimals")]
    Decimals(usize),
    /// It is greater than this.
    #[error("must be at most {0}")]
    Range(u64),
}

/// The digits of a decimal number as an integer of its last decimal.
fn scaled(text: &str, decimals: usize, most: u64) -> Result<u128, InvalidAmount> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) {
        return Err(InvalidAmount::Form);
    }
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > decimals {
        return Err(InvalidAmount::Decimals(decimals));
    }
    let too_large = InvalidAmount::Range(most);
    let whole: u64 = match whole.trim_start_matches('0') {
        "" => 0,
        digits => digits.parse().map_err(|_| too_large)?,
    };
    let padded = format!("{fraction:0<decimals$}");
    let fraction: u128 = padded.parse().map_err(|_| InvalidAmount::Form)?;
    let unit = 10_u128.pow(u32::try_from(decimals).unwrap_or_default());
    let value = u128::from(whole) * unit + fraction;
    match value <= u128::from(most) * unit {
        true => Ok(value),
        false => Err(too_large),
    }
}

/// Writes an integer of the last decimal as a decimal number without trailing zeros.
fn write_scaled(f: &mut fmt::Formatter<'_>, value: u128, decimals: usize) -> fmt::Result {
    let unit = 10_u128.pow(u32::try_from(decimals).unwrap_or_default());
    let (whole, fraction) = (value / unit, value % unit);
    if fraction == 0 {
        return write!(f, "{whole}");
    }
    let fraction = format!("{fraction:0decimals$}");
    write!(f, "{whole}.{}", fraction.trim_end_matches('0'))
}

impl Price {
    const DECIMALS: usize = 3;
    const MOST: u64 = 1_000_000;

    /// The price of one token in billionths of a USD.
    ///
    /// ```
    /// use agentcfg_core::model::Price;
    /// assert_eq!("2".parse::<Price>()?.nano_usd_per_token(), 2000);
    /// # Ok::<(), agentcfg_core::model::InvalidAmount>(())
    /// ```
    pub const fn nano_usd_per_token(self) -> u32 {
        self.0
    }

    /// The price of thousandths of a USD per million tokens.
    pub(crate) const fn of_thousandths(thousandths: u32) -> Self {
        Self(thousandths)
    }
}

impl FromStr for Price {
    type Err = InvalidAmount;

    fn from_str(text: &str) -> Result<Self, InvalidAmount> {
        let value = scaled(text, Self::DECIMALS, Self::MOST)?;
        u32::try_from(value)
            .map(Self)
            .map_err(|_| InvalidAmount::Range(Self::MOST))
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.0.into(), Self::DECIMALS)
    }
}

/// A price is a number in JSON: three decimals of a million fit a double exactly.
impl Serialize for Price {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 % 1000 {
            0 => serializer.serialize_u32(self.0 / 1000),
            _ => serializer.serialize_f64(f64::from(self.0) / 1000.0),
        }
    }
}

impl<'de> Deserialize<'de> for Price {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = serde_json::Number::deserialize(deserializer)?;
        number.to_string().parse().map_err(de::Error::custom)
    }
}

impl FromJson for Price {
    fn from_json(json: Json<'_>, field: &dyn fmt::Display, faults: &mut Faults) -> Option<Self> {
        decimal(json, field, "a number", faults)
    }
}

impl Usd {
    const DECIMALS: usize = 9;
    /// The greatest amount that is read: that of a limit.
    const MOST: u64 = 1_000_000_000;
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// An amount in billionths of a USD.
    ///
    /// ```
    /// use agentcfg_core::model::Usd;
    /// assert_eq!(Usd::from_nanos(2_000_000_000).to_string(), "2");
    /// ```
    pub const fn from_nanos(nanos: u128) -> Self {
        Self(nanos)
    }

    /// The amount in billionths of a USD.
    ///
    /// ```
    /// assert_eq!(agentcfg_core::model::Usd::ZERO.nanos(), 0);
    /// ```
    pub const fn nanos(self) -> u128 {
        self.0
    }

    /// The sum, or the greatest amount where it would be greater.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl FromStr for Usd {
    type Err = InvalidAmount;

    fn from_str(text: &str) -> Result<Self, InvalidAmount> {
        scaled(text, Self::DECIMALS, Self::MOST).map(Self)
    }
}

impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.0, Self::DECIMALS)
    }
}

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        // A sum may be greater than what a request may name.
        scaled(&text, Self::DECIMALS, u64::MAX)
            .map(Self)
            .map_err(de::Error::custom)
    }
}

impl FromJson for Usd {
    fn from_json(json: Json<'_>, field: &dyn fmt::Display, faults: &mut Faults) -> Option<Self> {
        decimal(json, field, "a decimal text or a number", faults)
    }
}

/// A number of JSON without its exponent, such as 0.000000001 for 1e-9.
fn without_exponent(number: &str) -> String {
    let Some((digits, exponent)) = number.split_once(['e', 'E']) else {
        return number.to_owned();
    };
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("-", digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    // Greater and smaller ones are out of range either way.
    let exponent = exponent.parse().unwrap_or(0_i64).clamp(-400, 400);
    let point = whole.len() as i64 + exponent;
    let digits = format!("{whole}{fraction}");
    let text = match usize::try_from(point) {
        Ok(point) if point > 0 => {
            let digits = format!("{digits:0<point$}");
            let (whole, fraction) = digits.split_at(point);
            format!("{whole}.{fraction}0")
        }
        _ => format!("0.{}{digits}", "0".repeat(point.unsigned_abs() as usize)),
    };
    format!("{sign}{text}")
}

/// Reads a decimal number from a text or a number of JSON.
fn decimal<T: FromStr<Err = InvalidAmount>>(
    json: Json<'_>,
    field: &dyn fmt::Display,
    wanted: &str,
    faults: &mut Faults,
) -> Option<T> {
    let text = match json {
        Json::Number(number) => without_exponent(&number.to_string()),
        Json::Huge => u128::MAX.to_string(),
        Json::String(text) => text.into_owned(),
        other => return mismatch(&other, field, wanted, faults),
    };
    text.parse()
        .map_err(|rule: InvalidAmount| faults.push(field, rule))
        .ok()
}

/// The prices of a model.
///
/// ```
/// use agentcfg_core::model::{ModelPrices, TokenUsage};
/// let prices = ModelPrices { cached_input: Some("0.1".parse()?), ..ModelPrices::of("2".parse()?, "10".parse()?) };
/// let usage = TokenUsage { input: 1000, cached_input: 600, output: 50, ..TokenUsage::default() };
/// // 400 at 2, 600 at 0.1 and 50 at 10 USD per million.
/// assert_eq!(prices.cost(&usage).to_string(), "0.00136");
/// # Ok::<(), agentcfg_core::model::InvalidAmount>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelPrices {
    /// Price of uncached input.
    pub input: Price,
    /// Price of input that is read from a cache; the price of input where it is absent.
    pub cached_input: Option<Price>,
    /// Price of input that is written to a cache; the price of input where it is absent.
    pub cache_write: Option<Price>,
    /// Price of output; `None` costs nothing.
    pub output: Option<Price>,
}

impl ModelPrices {
    /// The prices of a model without those of a cache.
    ///
    /// ```
    /// use agentcfg_core::model::ModelPrices;
    /// let prices = ModelPrices::of("2".parse()?, "10".parse()?);
    /// assert_eq!(prices.cache_write, None);
    /// # Ok::<(), agentcfg_core::model::InvalidAmount>(())
    /// ```
    pub const fn of(input: Price, output: Price) -> Self {
        Self {
            input,
            cached_input: None,
            cache_write: None,
            output: Some(output),
        }
    }

    /// The cost of a call. It cannot overflow: a token count has 64 bits and a price 30.
    ///
    /// ```
    /// use agentcfg_core::model::{ModelPrices, TokenUsage};
    /// let prices = ModelPrices::of("2".parse()?, "10".parse()?);
    /// assert_eq!(prices.cost(&TokenUsage::default()).nanos(), 0);
    /// # Ok::<(), agentcfg_core::model::InvalidAmount>(())
    /// ```
    pub fn cost(&self, usage: &TokenUsage) -> Usd {
        let of = |tokens: u64, price: Price| u128::from(tokens) * u128::from(price.0);
        let plain = usage
            .input
            .saturating_sub(usage.cached_input.saturating_add(usage.cache_write));
        Usd(of(plain, self.input)
            + of(usage.cached_input, self.cached_input.unwrap_or(self.input))
            + of(usage.cache_write, self.cache_write.unwrap_or(self.input))
            + of(usage.output, self.output.unwrap_or_default()))
    }
}

/// The tokens of a model call.
///
/// ```
/// use agentcfg_core::model::TokenUsage;
/// let usage = TokenUsage { input: 12, output: 5, reasoning: 3, ..TokenUsage::default() };
/// assert!(usage.reasoning <= usage.output);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenUsage {
    /// All input, with that of caches.
    pub input: u64,
    /// Input that was read from a cache.
    pub cached_input: u64,
    /// Input that was written to a cache.
    pub cache_write: u64,
    /// All output, with reasoning.
    pub output: u64,
    /// Output that was reasoning.
    pub reasoning: u64,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The cost in another way: with decimal texts, digit by digit, as on paper.
    fn on_paper(parts: &[(u64, &str)]) -> String {
        // Billionths of a USD, as decimal digits from the last one.
        let mut sum: Vec<u8> = Vec::new();
        for (tokens, price) in parts {
            let (whole, fraction) = price.split_once('.').unwrap_or((price, ""));
            let price = format!("{whole}{fraction:0<3}");
            let tokens = tokens.to_string();
            for (i, a) in tokens.bytes().rev().enumerate() {
                for (j, b) in price.bytes().rev().enumerate() {
                    let mut carry = (a - b'0') * (b - b'0');
                    let mut place = i + j;
                    while carry > 0 {
                        sum.resize(sum.len().max(place + 1), 0);
                        let digit = sum[place] + carry;
                        sum[place] = digit % 10;
                        carry = digit / 10;
                        place += 1;
                    }
                }
            }
        }
        sum.resize(sum.len().max(10), 0);
        let digits: String = sum.iter().rev().map(|digit| char::from(digit + b'0')).collect();
        let (whole, fraction) = digits.split_at(digits.len() - 9);
        let text = format!("{}.{fraction}", whole.trim_start_matches('0'));
        let text = text.trim_end_matches('0').trim_end_matches('.');
        match text.strip_prefix('.') {
            Some(fraction) => format!("0.{fraction}"),
            None if text.is_empty() => "0".to_owned(),
            None => text.to_owned(),
        }
    }

    fn price() -> impl Strategy<Value = String> {
        (0_u32..=1_000_000_000).prop_map(|thousandths| Price(thousandths).to_string())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn costs_are_those_that_are_computed_on_paper(
            tokens in (0_u64..1 << 40, 0_u64..1 << 40, 0_u64..1 << 40, 0_u64..1 << 40),
            prices in (price(), price(), price(), price()),
        ) {
            let (plain, cached, written, output) = tokens;
            let usage = TokenUsage {
                input: plain + cached + written,
                cached_input: cached,
                cache_write: written,
                output,
                reasoning: 0,
            };
            let of = |text: &String| text.parse::<Price>().unwrap();
            let all = ModelPrices {
                input: of(&prices.0),
                cached_input: Some(of(&prices.1)),
                cache_write: Some(of(&prices.2)),
                output: Some(of(&prices.3)),
            };
            let expected = on_paper(&[(plain, &prices.0), (cached, &prices.1), (written, &prices.2), (output, &prices.3)]);
            prop_assert_eq!(all.cost(&usage).to_string(), expected);
            // Without prices of a cache, all input costs the same.
            let simple = ModelPrices::of(all.input, of(&prices.3));
            let expected = on_paper(&[(usage.input, &prices.0), (output, &prices.3)]);
            prop_assert_eq!(simple.cost(&usage).to_string(), expected);
        }

        #[test]
        fn amounts_read_back(nanos in 0_u64..=1_000_000_000_000_000_000) {
            let amount = Usd::from_nanos(nanos.into());
            prop_assert_eq!(amount.to_string().parse(), Ok(amount));
            let json = serde_json::to_string(&amount).unwrap();
            prop_assert_eq!(serde_json::from_str::<Usd>(&json).unwrap(), amount);
        }

        #[test]
        fn prices_read_back(thousandths in 0_u32..=1_000_000_000) {
            let price = Price(thousandths);
            prop_assert_eq!(price.to_string().parse(), Ok(price));
            let json = serde_json::to_string(&price).unwrap();
            prop_assert_eq!(serde_json::from_str::<Price>(&json).unwrap(), price);
        }
    }

    #[test]
    fn the_greatest_counts_and_prices_do_not_overflow() {
        let most = Price(1_000_000_000);
        let usage = TokenUsage {
            input: u64::MAX,
            cached_input: u64::MAX,
            cache_write: u64::MAX,
            output: u64::MAX,
            reasoning: 0,
        };
        let cost = ModelPrices::of(most, most).cost(&usage);
        assert_eq!(cost.nanos(), 3 * u128::from(u64::MAX) * 1_000_000_000);
    }

    #[test]
    fn numbers_with_an_exponent_are_amounts() {
        for (number, expected) in [
            ("1e-9", "0.0000000010"),
            ("1.5e-7", "0.00000015"),
            ("12.5e1", "125.0"),
            ("1.25E3", "1250.0"),
            ("1e9", "1000000000.0"),
            ("-2e-1", "-0.2"),
            ("7", "7"),
        ] {
            let text = without_exponent(number);
            assert_eq!(text.parse::<Usd>(), expected.parse(), "{number}: {text}");
        }
        assert!(without_exponent("1e300").parse::<Usd>().is_err());
        assert!(without_exponent("1e-300").parse::<Usd>().is_err());
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        use InvalidAmount::{Decimals, Form, Range};
        for (text, expected) in [
            ("", Form),
            (".5", Form),
            ("1.", Form),
            ("-1", Form),
            ("+1", Form),
            ("1e3", Form),
            ("1,5", Form),
            (" 1", Form),
            ("0.0000000001", Decimals(9)),
            ("1000000000.000000001", Range(1_000_000_000)),
            ("99999999999999999999999", Range(1_000_000_000)),
        ] {
            assert_eq!(text.parse::<Usd>(), Err(expected), "{text}");
        }
        assert_eq!("0.10000000000".parse(), Ok(Usd(100_000_000)));
        assert_eq!("1000000000".parse(), Ok(Usd(1_000_000_000_000_000_000)));
        assert_eq!("1000000.001".parse::<Price>(), Err(Range(1_000_000)));
    }
}
