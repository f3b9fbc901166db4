//! Colours, sizes, fonts and patterns that all charts share.
//!
//! Series differ by colour and by pattern or dash, so that neither colour vision
//! nor a colour printer is needed. The pairs are from the Okabe-Ito set,
//! lightened for the dark scheme. Scales grow darker (on dark paper: brighter)
//! with what they stand for.

use std::sync::LazyLock;

use ab_glyph::{Font as _, FontRef};
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
    /// What is there but not the point.
    Faint,
    /// A policy, by its position.
    Series(usize),
    /// The order of a folio.
    Order(usize),
    /// How much of something, 0 to [`LEVELS`].
    Level(usize),
    /// How much more the first of two policies has, 0 to [`DIFFERENCES`].
    FirstMore(usize),
    /// How much more the second one has.
    SecondMore(usize),
}

/// Series that have a colour and pattern of their own; more begin again.
pub(super) const SERIES: usize = 6;
/// Orders that have a colour of their own; larger ones share the last.
pub(super) const ORDERS: usize = 10;
/// Steps of a scale of amounts.
pub(super) const LEVELS: usize = 8;
/// Steps of a scale of differences, on each side.
pub(super) const DIFFERENCES: usize = 4;

/// Colours of an ink on light and on dark paper.
const FIXED: [(Ink, u32, u32); 6] = [
    (Ink::Paper, 0xff_ff_ff, 0x12_16_1c),
    (Ink::Text, 0x1b_1f_24, 0xe8_ec_f1),
    (Ink::Muted, 0x57_60_6a, 0xa3_ad_b9),
    (Ink::Grid, 0xe4_e8_ec, 0x28_2f_38),
    (Ink::Axis, 0x8c_95_9f, 0x6b_76_83),
    (Ink::Faint, 0xcd_d5_dd, 0x3c_46_52),
];
const OF_SERIES: [(u32, u32); SERIES] = [
    (0x00_72_b2, 0x4f_a8_e8),
    (0xd5_5e_00, 0xff_91_4d),
    (0x00_9e_73, 0x2f_c4_98),
    (0xcc_79_a7, 0xe5_a3_c8),
    (0xb5_82_00, 0xf0_c0_50),
    (0x4b_4f_9e, 0xa4_a8_f0),
];
const OF_ORDERS: [(u32, u32); ORDERS] = [
    (0xf7_cc_4b, 0xfe_e4_80),
    (0xfe_ab_3f, 0xfe_cb_89),
    (0xfb_8c_4e, 0xfe_b3_85),
    (0xee_71_65, 0xff_97_85),
    (0xd8_5b_7c, 0xfc_78_93),
    (0xba_4c_90, 0xe2_69_ad),
    (0x97_42_9e, 0xc0_60_c3),
    (0x70_3b_a5, 0x97_5c_d2),
    (0x45_35_a2, 0x67_59_d6),
    (0x00_30_94, 0x1e_59_cd),
];
const OF_LEVELS: [(u32, u32); LEVELS] = [
    (0xda_ee_fe, 0x1e_2e_47),
    (0xb9_d4_ea, 0x30_45_60),
    (0x99_ba_d7, 0x43_5e_7a),
    (0x7a_a0_c5, 0x57_77_94),
    (0x5d_86_b2, 0x6c_92_b0),
    (0x41_6d_a0, 0x81_ae_cb),
    (0x26_54_8d, 0x97_ca_e7),
    (0x0b_3a_7a, 0xb7_e6_fe),
];
const OF_FIRST_MORE: [(u32, u32); DIFFERENCES] = [
    (0xc1_e3_fc, 0x23_3f_5b),
    (0x89_bc_e2, 0x3b_67_8e),
    (0x52_95_c8, 0x52_93_c4),
    (0x03_6e_ae, 0x69_c1_fc),
];
const OF_SECOND_MORE: [(u32, u32); DIFFERENCES] = [
    (0xfb_da_c1, 0x56_33_1f),
    (0xee_b1_88, 0x8d_52_2e),
    (0xdf_85_50, 0xc8_73_3d),
    (0xcf_56_04, 0xff_9b_5a),
];

/// Font sizes in pixels.
pub(super) const TITLE_PX: i32 = 14;
pub(super) const LABEL_PX: i32 = 12;
pub(super) const SMALL_PX: i32 = 11;

/// The bundled fonts, which `fonts/README.md` is about.
pub(crate) const REGULAR: &[u8] = include_bytes!("../../fonts/Inter-Regular.ttf");
pub(crate) const SEMI_BOLD: &[u8] = include_bytes!("../../fonts/Inter-SemiBold.ttf");

static MEASURED: LazyLock<FontRef<'static>> =
    LazyLock::new(|| FontRef::try_from_slice(SEMI_BOLD).expect("the bundled font is whole"));

/// What other fonts that `sans-serif` may stand for are wider, at most.
const WIDER: f32 = 1.06;

/// Width of a text in the widest font that is likely.
pub(super) fn text_width(text: &str, px: i32) -> i32 {
    let font = &*MEASURED;
    let units: f32 = text.chars().map(|c| font.h_advance_unscaled(font.glyph_id(c))).sum();
    let per_em = font.units_per_em().unwrap_or(2048.0);
    (units / per_em * px as f32 * WIDER).ceil() as i32
}

/// Lines of a text that fit into a width.
pub(super) fn wrap(text: &str, width: i32, px: i32) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let longer = lines.last().map(|line| format!("{line} {word}"));
        match longer.filter(|line| text_width(line, px) <= width) {
            Some(line) => *lines.last_mut().expect("it was made longer") = line,
            None => lines.push(shorten(word, width, px)),
        }
    }
    lines
}

/// A text cut in its middle if it does not fit into a width, so that both ends can be told.
pub(super) fn shorten(text: &str, width: i32, px: i32) -> String {
    let letters: Vec<char> = text.chars().collect();
    let cut = |kept: usize| {
        let (first, last) = letters.split_at(kept.div_ceil(2));
        let last = &last[last.len() - kept / 2..];
        first.iter().chain(&['\u{2026}']).chain(last).collect::<String>()
    };
    if text_width(text, px) <= width {
        return text.to_owned();
    }
    let fits = (0..letters.len()).rev().map(cut).find(|text| text_width(text, px) <= width);
    fits.unwrap_or_default()
}

impl Ink {
    /// The ink of a folio's order.
    pub(super) fn of_order(order: u8) -> Self {
        Self::Order(usize::from(order).min(ORDERS - 1))
    }

    /// All inks.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let fixed = FIXED.into_iter().map(|(ink, ..)| ink);
        fixed
            .chain((0..SERIES).map(Self::Series))
            .chain((0..ORDERS).map(Self::Order))
            .chain((0..LEVELS).map(Self::Level))
            .chain((0..DIFFERENCES).map(Self::FirstMore))
            .chain((0..DIFFERENCES).map(Self::SecondMore))
    }

    fn pair(self) -> (u32, u32) {
        match self {
            Self::Series(n) => OF_SERIES[n % SERIES],
            Self::Order(n) => OF_ORDERS[n],
            Self::Level(n) => OF_LEVELS[n],
            Self::FirstMore(n) => OF_FIRST_MORE[n],
            Self::SecondMore(n) => OF_SECOND_MORE[n],
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
            Self::Faint => "ra-faint".to_owned(),
            Self::Series(n) => format!("ra-s{}", n % SERIES),
            Self::Order(n) => format!("ra-o{n}"),
            Self::Level(n) => format!("ra-h{n}"),
            Self::FirstMore(n) => format!("ra-a{n}"),
            Self::SecondMore(n) => format!("ra-b{n}"),
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

/// Whether a point of the tile, in its pixels, is under the strokes of the pattern.
pub(super) fn is_stroked(series: usize, x: f64, y: f64) -> bool {
    const HALF_WIDTH: f64 = 0.7;
    let (x, y) = (x.rem_euclid(6.0), y.rem_euclid(6.0));
    let near = |distance: f64| {
        let off = distance.rem_euclid(6.0);
        off.min(6.0 - off) <= HALF_WIDTH
    };
    let diagonal = std::f64::consts::FRAC_1_SQRT_2;
    // A diagonal's distance is measured across it.
    let slanted = |sum: f64| {
        let off = sum.rem_euclid(6.0);
        off.min(6.0 - off) * diagonal <= HALF_WIDTH
    };
    match series % SERIES {
        1 => slanted(x + y),
        2 => near(y - 3.0),
        3 => slanted(x - y),
        4 => near(x - 3.0),
        5 => near(y - 3.0) || near(x - 3.0),
        _ => false,
    }
}

/// Lengths of dashes and gaps that tell lines apart; the first series is solid.
pub(super) fn dashes(series: usize) -> &'static [i32] {
    match series % SERIES {
        1 => &[7, 4],
        2 => &[2, 3],
        3 => &[9, 3, 2, 3],
        4 => &[12, 4],
        5 => &[4, 2, 1, 2],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inks_can_be_told_apart_by_their_colour() {
        let colours: Vec<String> = Ink::all().map(Ink::light).collect();
        let unique: std::collections::BTreeSet<_> = colours.iter().collect();
        assert_eq!(unique.len(), colours.len());
    }

    #[test]
    fn texts_are_cut_to_fit() {
        let name = "tree:/home/someone/linux@v7.3-rc1,patch=align.patch";
        let cut = shorten(name, 150, LABEL_PX);
        assert!(text_width(&cut, LABEL_PX) <= 150, "{cut}");
        assert!(cut.starts_with("tree:") && cut.ends_with("patch") && cut.contains('\u{2026}'));
        assert_eq!(shorten("linux-6.18", 150, LABEL_PX), "linux-6.18");
        let lines = wrap("one two three four five six seven", 90, SMALL_PX);
        assert!(lines.len() > 1 && lines.iter().all(|line| text_width(line, SMALL_PX) <= 90));
        assert_eq!(lines.join(" "), "one two three four five six seven");
    }
}
