//! `format` files: where in a record each field of an event stands.

use memchr::memmem;

use crate::bytes::Endian;

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A number.
    Int,
    /// Text of fixed size.
    Chars,
    /// Offset and length of text elsewhere in the record, packed into 32 bits; from the start of the
    /// record, or (`__rel_loc`) from the end of the field.
    Located { is_relative: bool },
}

/// One field of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    name: String,
    offset: usize,
    size: usize,
    is_signed: bool,
    kind: Kind,
}

impl Field {
    /// A number that is not listed in any format.
    pub(crate) fn number(offset: usize, size: usize) -> Self {
        Self { name: String::new(), offset, size, is_signed: false, kind: Kind::Int }
    }

    pub(crate) fn name(&self) -> &[u8] {
        self.name.as_bytes()
    }

    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Whether every event has the field.
    pub(crate) fn is_common(&self) -> bool {
        self.name.starts_with("common_")
    }

    /// Its value, sign-extended where the field is signed.
    pub(crate) fn int(&self, record: &[u8], endian: Endian) -> Option<u64> {
        if self.kind != Kind::Int {
            return None;
        }
        let value = endian.uint(record, self.offset, self.size)?;
        if !self.is_signed {
            return Some(value);
        }
        let unused_bits = 64 - 8 * self.size as u32;
        Some(((value << unused_bits).cast_signed() >> unused_bits).cast_unsigned())
    }

    /// Its text.
    pub(crate) fn text<'r>(&self, record: &'r [u8], endian: Endian) -> Option<&'r [u8]> {
        let (offset, size) = match self.kind {
            Kind::Int => return None,
            Kind::Chars => (self.offset, self.size),
            Kind::Located { is_relative } => {
                let location = endian.u32(record, self.offset)?;
                let base = if is_relative { self.offset + self.size } else { 0 };
                (base + (location & 0xffff) as usize, (location >> 16) as usize)
            }
        };
        Some(crate::bytes::until_nul(record.get(offset..offset.checked_add(size)?)?))
    }
}

/// One event's `format` file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Format {
    pub(crate) name: String,
    pub(crate) id: u16,
    pub(crate) fields: Vec<Field>,
}

impl Format {
    /// Reads a `format` file; None where it names no event.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let mut format = Self { fields: fields(text), ..Self::default() };
        for line in text.split(|&b| b == b'\n') {
            if let Some(name) = line.strip_prefix(b"name: ") {
                format.name = String::from_utf8_lossy(name.trim_ascii()).into_owned();
            } else if let Some(id) = line.strip_prefix(b"ID: ") {
                format.id = std::str::from_utf8(id.trim_ascii()).ok()?.parse().ok()?;
            } else if line.starts_with(b"print fmt:") {
                break;
            }
        }
        (!format.name.is_empty() && format.id > 0).then_some(format)
    }

    /// The field called `name`.
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// The `field:` lines of a `format` or `header_page` file.
pub(crate) fn fields(text: &[u8]) -> Vec<Field> {
    text.split(|&b| b == b'\n').filter_map(field).collect()
}

/// `\tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;`.
fn field(line: &[u8]) -> Option<Field> {
    let line = line.trim_ascii_start().strip_prefix(b"field:")?;
    let (declaration, rest) = line.split_at(memchr::memchr(b';', line)?);
    let size = property(rest, b"size:")?;
    // Kernels before 2.6.31 do not say.
    let is_signed = property(rest, b"signed:").unwrap_or(0) == 1;
    let declaration = std::str::from_utf8(declaration).ok()?;
    let is_array = declaration.contains('[');
    let kind = match declaration {
        d if d.starts_with("__data_loc ") => Kind::Located { is_relative: false },
        d if d.starts_with("__rel_loc ") => Kind::Located { is_relative: true },
        _ if is_array || !matches!(size, 1 | 2 | 4 | 8) => Kind::Chars,
        _ => Kind::Int,
    };
    let name = declaration.rsplit(' ').next()?;
    let name = name.split('[').next()?.to_owned();
    Some(Field { name, offset: property(rest, b"offset:")?, size, is_signed, kind })
}

fn property(text: &[u8], key: &[u8]) -> Option<usize> {
    let at = memmem::find(text, key)? + key.len();
    let digits = text[at..].iter().take_while(|b| b.is_ascii_digit()).count();
    // Records are at most a few pages, so five digits are plenty.
    let digits = text[at..at + digits].get(..digits).filter(|digits| digits.len() <= 5)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}
