//! Numbers and separators, as every text format writes them.
//!
//! These are nom parsers like all others, written out as loops: they run for every field of every
//! line.

use nom::IResult;
use nom::error::{Error, ErrorKind};
use traces::event::Device;
use traces::units::Time;

/// What every scanner returns: the rest of the line and the value.
pub(crate) type Scan<'a, T> = IResult<&'a [u8], T>;

fn fail<T>(i: &[u8], kind: ErrorKind) -> Scan<'_, T> {
    Err(nom::Err::Error(Error::new(i, kind)))
}

/// Splits where `is_part` ends to hold.
#[inline]
fn split_while(i: &[u8], is_part: impl Fn(u8) -> bool) -> (&[u8], &[u8]) {
    let end = i.iter().position(|&b| !is_part(b)).unwrap_or(i.len());
    i.split_at(end)
}

/// Any number of spaces, also none.
#[inline]
#[expect(clippy::unnecessary_wraps, reason = "a scanner like the others")]
pub(crate) fn spaces(i: &[u8]) -> Scan<'_, &[u8]> {
    let (spaces, rest) = split_while(i, |b| b == b' ');
    Ok((rest, spaces))
}

/// At least one space.
#[inline]
pub(crate) fn spaces1(i: &[u8]) -> Scan<'_, &[u8]> {
    let (spaces, rest) = split_while(i, |b| b == b' ');
    if spaces.is_empty() { fail(i, ErrorKind::Space) } else { Ok((rest, spaces)) }
}

/// The byte `expected`.
#[inline]
pub(crate) fn byte(i: &[u8], expected: u8) -> Scan<'_, ()> {
    match i {
        [first, rest @ ..] if *first == expected => Ok((rest, ())),
        _ => fail(i, ErrorKind::Char),
    }
}

/// A decimal number.
#[inline]
pub(crate) fn dec_u64(i: &[u8]) -> Scan<'_, u64> {
    let (digits, rest) = split_while(i, |b| b.is_ascii_digit());
    if digits.is_empty() {
        return fail(i, ErrorKind::Digit);
    }
    let digit = |b: &u8| u64::from(b - b'0');
    // 19 digits cannot overflow.
    if digits.len() <= 19 {
        return Ok((rest, digits.iter().fold(0, |n, b| n * 10 + digit(b))));
    }
    let number = digits.iter().try_fold(0_u64, |n, b| n.checked_mul(10)?.checked_add(digit(b)));
    number.map_or_else(|| fail(i, ErrorKind::Digit), |number| Ok((rest, number)))
}

/// A decimal number of at most 32 bits.
#[inline]
pub(crate) fn dec_u32(i: &[u8]) -> Scan<'_, u32> {
    let (rest, number) = dec_u64(i)?;
    u32::try_from(number).map_or_else(|_| fail(i, ErrorKind::Digit), |number| Ok((rest, number)))
}

/// A decimal number that may have a minus in front.
#[inline]
pub(crate) fn dec_i64(i: &[u8]) -> Scan<'_, i64> {
    let (digits, is_negative) = match i {
        [b'-', digits @ ..] => (digits, true),
        _ => (i, false),
    };
    let (rest, number) = dec_u64(digits)?;
    let number =
        if is_negative { 0_i64.checked_sub_unsigned(number) } else { i64::try_from(number).ok() };
    number.map_or_else(|| fail(i, ErrorKind::Digit), |number| Ok((rest, number)))
}

/// Hexadecimal digits, without a prefix.
#[inline]
pub(crate) fn hex_digits(i: &[u8]) -> Scan<'_, u64> {
    let (digits, rest) = split_while(i, |b| b.is_ascii_hexdigit());
    let zeros = digits.iter().take_while(|&&b| b == b'0').count();
    if digits.is_empty() || digits.len() - zeros > 16 {
        return fail(i, ErrorKind::HexDigit);
    }
    let number = digits.iter().fold(0, |n, &b| n << 4 | u64::from(hex_value(b)));
    Ok((rest, number))
}

#[inline]
fn hex_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

/// A number that is hexadecimal with or without `0x`.
#[inline]
pub(crate) fn hex(i: &[u8]) -> Scan<'_, u64> {
    hex_digits(i.strip_prefix(b"0x").unwrap_or(i))
}

/// A number that is hexadecimal after `0x` and decimal otherwise.
#[inline]
pub(crate) fn number(i: &[u8]) -> Scan<'_, u64> {
    match i.strip_prefix(b"0x") {
        Some(digits) => hex_digits(digits),
        None => dec_u64(i),
    }
}

/// A device number, `MAJOR:MINOR` or `MAJOR,MINOR`.
#[inline]
pub(crate) fn device(i: &[u8]) -> Scan<'_, Device> {
    let (rest, major) = dec_u32(i)?;
    let (rest, minor) = match rest {
        [b':' | b',', minor @ ..] => dec_u32(minor)?,
        _ => return fail(i, ErrorKind::Char),
    };
    Ok((rest, Device { major, minor }))
}

/// `SECONDS.FRACTION` with up to nine digits after the point, in nanoseconds.
#[inline]
pub(crate) fn seconds(i: &[u8]) -> Scan<'_, Time> {
    const NS_DIGITS: u32 = 9;
    let (rest, seconds) = dec_u64(i)?;
    let (rest, ()) = byte(rest, b'.')?;
    let digits = rest.len();
    let (rest, fraction) = dec_u64(rest)?;
    let unwritten = NS_DIGITS.checked_sub((digits - rest.len()) as u32);
    let time = unwritten.and_then(|unwritten| {
        let ns = fraction * 10_u64.pow(unwritten);
        seconds.checked_mul(1_000_000_000)?.checked_add(ns)
    });
    time.map_or_else(|| fail(i, ErrorKind::Digit), |time| Ok((rest, Time(time))))
}
