//! Numbers and separators, as every text format writes them.

use nom::branch::alt;
use nom::bytes::complete::{tag, take_while, take_while1};
use nom::character::complete::{char, u64 as dec_u64};
use nom::combinator::{map_opt, opt};
use nom::sequence::preceded;
use nom::{IResult, Parser};
use traces::event::Device;
use traces::units::Time;

/// What every scanner returns: the rest of the line and the value.
pub(crate) type Scan<'a, T> = IResult<&'a [u8], T>;

/// Any number of spaces, also none.
pub(crate) fn spaces(i: &[u8]) -> Scan<'_, &[u8]> {
    take_while(|b| b == b' ')(i)
}

/// At least one space.
pub(crate) fn spaces1(i: &[u8]) -> Scan<'_, &[u8]> {
    take_while1(|b| b == b' ')(i)
}

/// Hexadecimal digits, without a prefix.
pub(crate) fn hex_digits(i: &[u8]) -> Scan<'_, u64> {
    map_opt(take_while1(|b: u8| b.is_ascii_hexdigit()), |digits: &[u8]| {
        let significant = digits.iter().position(|&b| b != b'0').unwrap_or(digits.len());
        let digits = &digits[significant..];
        (digits.len() <= 16)
            .then(|| digits.iter().fold(0, |n, &b| n << 4 | u64::from(hex_value(b))))
    })
    .parse(i)
}

fn hex_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

/// A number that is hexadecimal with or without `0x`.
pub(crate) fn hex(i: &[u8]) -> Scan<'_, u64> {
    preceded(opt(tag("0x")), hex_digits).parse(i)
}

/// A number that is hexadecimal after `0x` and decimal otherwise.
pub(crate) fn number(i: &[u8]) -> Scan<'_, u64> {
    alt((preceded(tag("0x"), hex_digits), dec_u64)).parse(i)
}

/// A device number, `MAJOR:MINOR` or `MAJOR,MINOR`.
pub(crate) fn device(i: &[u8]) -> Scan<'_, Device> {
    let (i, major) = nom::character::complete::u32(i)?;
    let (i, _) = alt((char(':'), char(','))).parse(i)?;
    let (i, minor) = nom::character::complete::u32(i)?;
    Ok((i, Device { major, minor }))
}

/// Digits and how many there were.
fn fraction(i: &[u8]) -> Scan<'_, u64> {
    map_opt(take_while1(|b: u8| b.is_ascii_digit()), |digits: &[u8]| {
        let scale = 10u64.pow(9u32.checked_sub(digits.len() as u32)?);
        Some(digits.iter().fold(0, |n, &b| n * 10 + u64::from(b - b'0')) * scale)
    })
    .parse(i)
}

/// `SECONDS.FRACTION` with up to nine digits after the point, in nanoseconds.
pub(crate) fn seconds(i: &[u8]) -> Scan<'_, Time> {
    map_opt((dec_u64, char('.'), fraction), |(seconds, _, ns)| {
        seconds.checked_mul(1_000_000_000)?.checked_add(ns).map(Time)
    })
    .parse(i)
}
