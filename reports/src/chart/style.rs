//! Colours, sizes and patterns that all charts share.
//!
//! Series differ by colour and by pattern, so that neither colour vision nor a
//! colour printer is needed. The pairs are from the Okabe-Ito set, lightened
//! for the dark scheme.

use plotters::style::RGBColor;

/// What a mark or a text is for; decides its colour in each scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ink {
    /// Behind everything.
    Paper,
    /// Titles and values.
    Text,
    /// Labels of axes and captions.
    Muted,
    /// Lines of the grid.
    Grid,
    /// The line bars stand on.
    Axis,
    /// A policy, by its position.
    Series(usize),
}

/// Series that have a colour and pattern of their own; more begin again.
pub(super) const SERIES: usize = 6;

/// Colours of an ink on light and on dark paper.
const FIXED: [(Ink, u32, u32); 5] = [
    (Ink::Paper, 0xff_ff_ff, 0x12_16_1c),
    (Ink::Text, 0x1b_1f_24, 0xe8_ec_f1),
    (Ink::Muted, 0x57_60_6a, 0xa3_ad_b9),
    (Ink::Grid, 0xdf_e3_e8, 0x2c_34_3e),
    (Ink::Axis, 0x8c_95_9f, 0x6b_76_83),
];
const OF_SERIES: [(u32, u32); SERIES] = [
    (0x00_72_b2, 0x4f_a8_e8),
    (0xd5_5e_00, 0xff_91_4d),
    (0x00_9e_73, 0x2f_c4_98),
    (0xcc_79_a7, 0xe5_a3_c8),
    (0xb5_82_00, 0xf0_c0_50),
    (0x4b_4f_9e, 0xa4_a8_f0),
];

/// Font sizes in pixels.
pub(super) const TITLE_PX: i32 = 16;
pub(super) const LABEL_PX: i32 = 12;
pub(super) const SMALL_PX: i32 = 11;

/// Hundredths of its size that a letter is wide, on average, in the fonts `sans-serif` stands for.
const LETTER_WIDTH_PERCENT: i32 = 56;

/// Width of a text, about.
pub(super) fn text_width(text: &str, px: i32) -> i32 {
    (text.chars().count() as i32 * px * LETTER_WIDTH_PERCENT + 99) / 100
}

/// Letters that fit into a width, about; at least one.
pub(super) fn letters_in(width: i32, px: i32) -> usize {
    let letters = width * 100 / (px * LETTER_WIDTH_PERCENT);
    letters.max(1).unsigned_abs() as usize
}

impl Ink {
    /// All inks.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        FIXED.into_iter().map(|(ink, ..)| ink).chain((0..SERIES).map(Self::Series))
    }

    fn pair(self) -> (u32, u32) {
        match self {
            Self::Series(n) => OF_SERIES[n % SERIES],
            fixed => FIXED
                .into_iter()
                .find(|(ink, ..)| *ink == fixed)
                .map_or((0, 0), |(_, light, dark)| (light, dark)),
        }
    }

    /// Its colour on light paper, by which the drawing is told apart afterwards.
    pub(super) fn rgb(self) -> RGBColor {
        let [_, red, green, blue] = self.pair().0.to_be_bytes();
        RGBColor(red, green, blue)
    }

    /// Its colour on light paper as SVG writes it.
    pub(super) fn light(self) -> String {
        format!("#{:06X}", self.pair().0)
    }

    /// Its colour on dark paper.
    pub(super) fn dark(self) -> String {
        format!("#{:06X}", self.pair().1)
    }

    /// Its class in SVG.
    pub(super) fn class(self) -> String {
        match self {
            Self::Paper => "ra-paper".to_owned(),
            Self::Text => "ra-text".to_owned(),
            Self::Muted => "ra-muted".to_owned(),
            Self::Grid => "ra-grid".to_owned(),
            Self::Axis => "ra-axis".to_owned(),
            Self::Series(n) => format!("ra-s{}", n % SERIES),
        }
    }
}

/// Strokes over a tile of 6 by 6 that make up the pattern of a series; the first one is solid.
pub(super) fn pattern(series: usize) -> Option<&'static str> {
    match series % SERIES {
        1 => Some("M-1 1L1 -1M0 6L6 0M5 7L7 5"),
        2 => Some("M0 3H6"),
        3 => Some("M-1 5L1 7M0 0L6 6M5 -1L7 1"),
        4 => Some("M3 0V6"),
        5 => Some("M0 3H6M3 0V6"),
        _ => None,
    }
}

/// Dashes that tell lines apart; the first one is solid.
pub(super) fn dashes(series: usize) -> Option<&'static str> {
    match series % SERIES {
        1 => Some("7 4"),
        2 => Some("2 3"),
        3 => Some("9 3 2 3"),
        4 => Some("12 4"),
        5 => Some("4 2 1 2"),
        _ => None,
    }
}
