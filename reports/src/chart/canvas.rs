//! Drawing in pixels.

use plotters::coord::Shift;
use plotters::prelude::{
    DrawingArea, IntoDrawingArea, IntoFont, PathElement, Rectangle, SVGBackend, Text,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontStyle, ShapeStyle};

use super::style::Ink;

/// plotters writes font sizes divided by this.
const FONT_DIVISOR: f64 = 1.24;

/// Drawing into memory does not fail.
const IN_MEMORY: &str = "an SVG in memory takes every element";

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

/// A drawing of a fixed size.
pub(super) struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
}

impl<'a> Canvas<'a> {
    /// An empty one, written to `svg` when it is dropped.
    pub(super) fn new(svg: &'a mut String, width: i32, height: i32) -> Self {
        let size = (width.unsigned_abs(), height.unsigned_abs());
        let canvas = Self { area: SVGBackend::with_string(svg, size).into_drawing_area() };
        canvas.rect((0, 0), (width, height), Ink::Paper);
        canvas
    }

    /// A filled rectangle between two corners.
    pub(super) fn rect(&self, from: (i32, i32), to: (i32, i32), ink: Ink) {
        let rectangle = Rectangle::new([from, to], ink.rgb().filled());
        self.area.draw(&rectangle).expect(IN_MEMORY);
    }

    /// A straight line.
    pub(super) fn line(&self, from: (i32, i32), to: (i32, i32), ink: Ink) {
        self.path(vec![from, to], ink, 1);
    }

    /// A line through points.
    pub(super) fn path(&self, points: Vec<(i32, i32)>, ink: Ink, width: u32) {
        let style = ShapeStyle { color: ink.rgb().to_rgba(), filled: false, stroke_width: width };
        self.area.draw(&PathElement::new(points, style)).expect(IN_MEMORY);
    }

    /// A text with its vertical middle at `at.1`.
    pub(super) fn text(&self, text: &str, at: (i32, i32), font: Font) {
        let weight = if font.bold { FontStyle::Bold } else { FontStyle::Normal };
        let style = ("sans-serif", f64::from(font.px) * FONT_DIVISOR)
            .into_font()
            .style(weight)
            .color(&font.ink.rgb())
            .pos(Pos::new(font.anchor, VPos::Center));
        self.area.draw(&Text::new(text, at, style)).expect(IN_MEMORY);
    }

    /// Ends the drawing.
    pub(super) fn finish(self) {
        self.area.present().expect(IN_MEMORY);
    }
}
