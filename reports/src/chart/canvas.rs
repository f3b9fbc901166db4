//! Drawing in pixels, as SVG or into a bitmap.

use std::sync::Once;

use plotters::coord::Shift;
use plotters::prelude::{
    BitMapBackend, Circle, DrawingArea, DrawingBackend, IntoDrawingArea, IntoFont, PathElement,
    Rectangle, SVGBackend, Text,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontStyle, ShapeStyle, register_font};

use super::style::{Ink, REGULAR, SEMI_BOLD, dashes, is_stroked};

/// plotters writes font sizes divided by this.
const SVG_FONT_DIVISOR: f64 = 1.24;
/// Ascent and descent of the bundled font, in its size: what a size means in a bitmap.
const BITMAP_FONT_HEIGHT: f64 = 1.21;
/// How much lower than plotters puts it a text has to be, in its size, for its letters to be centred.
const BITMAP_FONT_DROP: f64 = 0.24;

/// Drawing into memory does not fail.
const IN_MEMORY: &str = "memory takes every element";

/// How a text is set.
#[derive(Clone, Copy)]
pub(super) struct Font {
    pub(super) px: i32,
    pub(super) ink: Ink,
    pub(super) bold: bool,
    pub(super) anchor: HPos,
}

impl Font {
    pub(super) fn new(px: i32, ink: Ink) -> Self {
        Self { px, ink, bold: false, anchor: HPos::Left }
    }

    pub(super) fn bold(self) -> Self {
        Self { bold: true, ..self }
    }

    pub(super) fn centred(self) -> Self {
        Self { anchor: HPos::Center, ..self }
    }

    pub(super) fn right(self) -> Self {
        Self { anchor: HPos::Right, ..self }
    }
}

/// Corners of a rectangle and what fills it.
pub(super) type Cell = ((i32, i32), (i32, i32), Ink);

enum Surface<'a> {
    Svg(DrawingArea<SVGBackend<'a>, Shift>),
    /// So many pixels of the bitmap to one of the drawing.
    Bitmap(DrawingArea<BitMapBackend<'a>, Shift>, i32),
}

/// A drawing of a fixed size.
pub(super) struct Canvas<'a> {
    surface: Surface<'a>,
}

impl<'a> Canvas<'a> {
    /// An empty one, written to `svg` when it is dropped.
    pub(super) fn svg(svg: &'a mut String, (width, height): (i32, i32)) -> Self {
        let size = (width.unsigned_abs(), height.unsigned_abs());
        Self { surface: Surface::Svg(SVGBackend::with_string(svg, size).into_drawing_area()) }
    }

    /// An empty one, in three bytes a pixel, each of the drawing's pixels `scale` pixels wide.
    pub(super) fn bitmap(pixels: &'a mut [u8], (width, height): (i32, i32), scale: i32) -> Self {
        register_fonts();
        let size = ((width * scale).unsigned_abs(), (height * scale).unsigned_abs());
        let area = BitMapBackend::with_buffer(pixels, size).into_drawing_area();
        Self { surface: Surface::Bitmap(area, scale) }
    }

    /// A filled rectangle between two corners.
    pub(super) fn rect(&self, from: (i32, i32), to: (i32, i32), ink: Ink) {
        match &self.surface {
            Surface::Svg(area) => draw_rect(area, from, to, ink),
            Surface::Bitmap(area, scale) => {
                let (from, to) = (scaled(from, *scale), scaled(to, *scale));
                draw_rect(area, from, (to.0 - 1, to.1 - 1), ink);
                if let Ink::Series(series) = ink {
                    draw_pattern(area, from, to, *scale, series);
                }
            }
        }
    }

    /// Many rectangles that do not overlap.
    pub(super) fn cells(&self, mut cells: Vec<Cell>) {
        // Those of one colour follow each other and become one element.
        let rank = |ink: Ink| Ink::all().position(|other| other == ink);
        cells.sort_by_cached_key(|(from, _, ink)| (rank(*ink), from.1, from.0));
        for (from, to, ink) in cells {
            self.rect(from, to, ink);
        }
    }

    /// A straight line.
    pub(super) fn line(&self, from: (i32, i32), to: (i32, i32), ink: Ink) {
        self.path(&[from, to], ink, 1);
    }

    /// A line through points; that of a series has its dashes.
    pub(super) fn path(&self, points: &[(i32, i32)], ink: Ink, width: i32) {
        match &self.surface {
            Surface::Svg(area) => draw_path(area, points.to_vec(), ink, width),
            Surface::Bitmap(area, scale) => {
                let points: Vec<_> = points.iter().map(|point| scaled(*point, *scale)).collect();
                let lengths = match ink {
                    Ink::Series(series) => dashes(series),
                    _ => &[],
                };
                for dash in dashed(&points, lengths, *scale) {
                    draw_path(area, dash, ink, width * scale);
                }
            }
        }
    }

    /// A filled circle.
    pub(super) fn dot(&self, centre: (i32, i32), radius: i32, ink: Ink) {
        let style = ink.rgb().filled();
        match &self.surface {
            Surface::Svg(area) => area.draw(&Circle::new(centre, radius, style)).expect(IN_MEMORY),
            Surface::Bitmap(area, scale) => {
                let circle = Circle::new(scaled(centre, *scale), radius * scale, style);
                area.draw(&circle).expect(IN_MEMORY);
            }
        }
    }

    /// A text with its vertical middle at `at.1`.
    pub(super) fn text(&self, text: &str, at: (i32, i32), font: Font) {
        match &self.surface {
            Surface::Svg(area) => {
                draw_text(area, text, at, font, f64::from(font.px) * SVG_FONT_DIVISOR);
            }
            Surface::Bitmap(area, scale) => {
                let px = f64::from(font.px * scale);
                let (x, y) = scaled(at, *scale);
                let y = y + (px * BITMAP_FONT_DROP).round() as i32;
                draw_text(area, text, (x, y), font, px * BITMAP_FONT_HEIGHT);
            }
        }
    }

    /// Ends the drawing.
    pub(super) fn finish(self) {
        match self.surface {
            Surface::Svg(area) => area.present().expect(IN_MEMORY),
            Surface::Bitmap(area, _) => area.present().expect(IN_MEMORY),
        }
    }
}

fn register_fonts() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for (style, bytes) in [(FontStyle::Normal, REGULAR), (FontStyle::Bold, SEMI_BOLD)] {
            let registered = register_font("sans-serif", style, bytes);
            assert!(registered.is_ok(), "the bundled fonts are whole");
        }
    });
}

fn scaled((x, y): (i32, i32), scale: i32) -> (i32, i32) {
    (x * scale, y * scale)
}

fn draw_rect<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    from: (i32, i32),
    to: (i32, i32),
    ink: Ink,
) {
    area.draw(&Rectangle::new([from, to], ink.rgb().filled())).expect(IN_MEMORY);
}

fn draw_path<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    points: Vec<(i32, i32)>,
    ink: Ink,
    width: i32,
) {
    let stroke_width = width.unsigned_abs();
    let style = ShapeStyle { color: ink.rgb().to_rgba(), filled: false, stroke_width };
    area.draw(&PathElement::new(points, style)).expect(IN_MEMORY);
}

fn draw_text<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    text: &str,
    at: (i32, i32),
    font: Font,
    size: f64,
) {
    let weight = if font.bold { FontStyle::Bold } else { FontStyle::Normal };
    let style = ("sans-serif", size)
        .into_font()
        .style(weight)
        .color(&font.ink.rgb())
        .pos(Pos::new(font.anchor, VPos::Center));
    area.draw(&Text::new(text, at, style)).expect(IN_MEMORY);
}

/// Strokes of paper over a bar, as [`pattern`](super::style::pattern) draws them in SVG.
fn draw_pattern(
    area: &DrawingArea<BitMapBackend<'_>, Shift>,
    from: (i32, i32),
    to: (i32, i32),
    scale: i32,
    series: usize,
) {
    let at = |pixel: i32| (f64::from(pixel) + 0.5) / f64::from(scale);
    let paper = Ink::Paper.rgb();
    for y in from.1..to.1 {
        for x in from.0..to.0 {
            if is_stroked(series, at(x), at(y)) {
                area.draw_pixel((x, y), &paper).expect(IN_MEMORY);
            }
        }
    }
}

/// A line cut into dashes.
fn dashed(points: &[(i32, i32)], lengths: &[i32], scale: i32) -> Vec<Vec<(i32, i32)>> {
    if lengths.is_empty() {
        return vec![points.to_vec()];
    }
    let mut dashes = Vec::new();
    let mut dash = points[..1].to_vec();
    let (mut at, mut left, mut drawn) = (0, lengths[0] * scale, true);
    for pair in points.windows(2) {
        let (mut from, to) = (pair[0], pair[1]);
        loop {
            let (dx, dy) = (f64::from(to.0 - from.0), f64::from(to.1 - from.1));
            let length = dx.hypot(dy);
            if length <= f64::from(left) {
                left -= length.round() as i32;
                dash.push(to);
                break;
            }
            let share = f64::from(left) / length;
            from = (from.0 + (dx * share).round() as i32, from.1 + (dy * share).round() as i32);
            dash.push(from);
            if drawn {
                dashes.push(std::mem::take(&mut dash));
            }
            dash = vec![from];
            drawn = !drawn;
            at = (at + 1) % lengths.len();
            left = lengths[at] * scale;
        }
    }
    if drawn && dash.len() > 1 {
        dashes.push(dash);
    }
    dashes
}
