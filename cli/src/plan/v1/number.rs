//! Numbers: spelled as in JSON, and kept exactly or refused.

use serde_json::Number;

/// Why a spelling is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// JSON does not spell numbers so.
    Spelling,
    /// A whole number beyond ±9,007,199,254,740,991.
    Range,
    /// A fraction that the value would not keep.
    Lossy,
}

/// The greatest whole number that each of its neighbours can be told from.
pub const MAX_SAFE: u64 = (1 << 53) - 1;

/// Reads a number.
///
/// # Errors
/// [`Fault`] as described there.
pub fn read(text: &str) -> Result<Number, Fault> {
    let decimal = Decimal::parse(text).ok_or(Fault::Spelling)?;
    if let Some(whole) = decimal.whole() {
        let whole = whole.filter(|n| *n <= MAX_SAFE).ok_or(Fault::Range)?;
        let whole = i64::try_from(whole).map_err(|_| Fault::Range)?;
        return Ok(Number::from(if decimal.negative { -whole } else { whole }));
    }
    let value: f64 = text.parse().map_err(|_| Fault::Spelling)?;
    let kept = Decimal::parse(&format!("{value:e}"));
    if kept.as_ref() != Some(&decimal) {
        return Err(Fault::Lossy);
    }
    Number::from_f64(value).ok_or(Fault::Lossy)
}

/// Whether JSON spells numbers so.
#[must_use]
pub fn is_json(text: &str) -> bool {
    Decimal::parse(text).is_some()
}

/// A decimal number: `0.digits * 10^exponent`, without zeros at either end of the digits.
#[derive(Debug, PartialEq, Eq)]
struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    exponent: i64,
}

impl Decimal {
    fn parse(text: &str) -> Option<Self> {
        let (negative, rest) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (mantissa, exponent) = match rest.find(['e', 'E']) {
            Some(at) => (&rest[..at], Some(&rest[at + 1..])),
            None => (rest, None),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (mantissa, None),
        };
        let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let fine = is_digits(whole)
            && (whole == "0" || !whole.starts_with('0'))
            && fraction.is_none_or(is_digits)
            && exponent.is_none_or(|e| is_digits(e.strip_prefix(['+', '-']).unwrap_or(e)));
        if !fine {
            return None;
        }
        // An exponent that does not fit is as good as the largest: no such value is kept.
        let exponent = exponent.map_or(0, |e| {
            e.parse().unwrap_or(if e.starts_with('-') { i64::MIN / 2 } else { i64::MAX / 2 })
        });
        let mut digits = [whole, fraction.unwrap_or_default()].concat().into_bytes();
        let mut exponent = exponent.clamp(i64::MIN / 2, i64::MAX / 2) + whole.len() as i64;
        let zeros = digits.iter().take_while(|b| **b == b'0').count();
        digits.drain(..zeros);
        exponent -= zeros as i64;
        while digits.last() == Some(&b'0') {
            digits.pop();
        }
        if digits.is_empty() {
            return Some(Self { negative: false, digits, exponent: 0 });
        }
        Some(Self { negative, digits, exponent })
    }

    /// For a whole number its absolute value, as far as that fits: `Some(None)` when it doesn't.
    fn whole(&self) -> Option<Option<u64>> {
        let n_digits = self.digits.len() as i64;
        if self.exponent < n_digits {
            return None;
        }
        if self.exponent > 19 {
            return Some(None);
        }
        let mut value: u64 = 0;
        for n in 0..self.exponent {
            let digit = usize::try_from(n).ok().and_then(|n| self.digits.get(n)).unwrap_or(&b'0');
            value = value.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
        }
        Some(Some(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_kept_up_to_the_safe_range() {
        let check = |text: &str, expected: Result<i64, Fault>| {
            assert_eq!(read(text), expected.map(Number::from), "{text}");
        };
        check("0", Ok(0));
        check("-0", Ok(0));
        check("0e999999999999999999999", Ok(0));
        check("1.0", Ok(1));
        check("1e3", Ok(1000));
        check("1200e-2", Ok(12));
        check("-17", Ok(-17));
        check("9007199254740991", Ok(9_007_199_254_740_991));
        check("-9007199254740991", Ok(-9_007_199_254_740_991));
        check("9007199254740992", Err(Fault::Range));
        check("9007199254740993", Err(Fault::Range));
        check("18446744073709551617", Err(Fault::Range));
        check("99999999999999999999", Err(Fault::Range));
        check("1e400", Err(Fault::Range));
        check("1e99999999999999999999", Err(Fault::Range));
    }

    #[test]
    fn fractions_are_kept_or_refused() {
        assert_eq!(read("0.1").ok().and_then(|n| n.as_f64()), Some(0.1));
        assert_eq!(read("-2.50").ok().and_then(|n| n.as_f64()), Some(-2.5));
        assert_eq!(read("1.00000000000000001"), Err(Fault::Lossy));
        assert_eq!(read("1e-9999"), Err(Fault::Lossy));
        assert_eq!(read("1e-99999999999999999999"), Err(Fault::Lossy));
    }

    #[test]
    fn other_spellings_are_refused() {
        for text in
            ["", "-", "+1", "01", "-01", ".5", "1.", "1.e5", "1e", "0x1", "1_0", "NaN", "1 "]
        {
            assert_eq!(read(text), Err(Fault::Spelling), "{text}");
        }
    }
}
