//! What the colours of a chart stand for.

use super::canvas::{Canvas, Font};
use super::figure::{LINE_HEIGHT, MARGIN};
use super::style::{Ink, LABEL_PX, shorten, text_width};

const MARK_WIDTH: i32 = 28;
const KEY_WIDTH: i32 = 12;
const GAP: i32 = 7;
const BETWEEN: i32 = 16;

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Bar,
    Line,
    End,
}

/// The legend of a figure.
#[derive(Clone, Debug)]
pub(super) enum Legend {
    /// Policies, one to a line.
    Series(Mark, Vec<String>),
    /// Colours with their meaning, after some words on what they show.
    Keys(&'static str, Vec<(Ink, String)>),
}

impl Legend {
    /// What it names.
    pub(super) fn names(&self) -> Vec<String> {
        match self {
            Self::Series(_, names) => names.clone(),
            Self::Keys(about, keys) => {
                let names = keys.iter().map(|(_, name)| name.clone());
                [(*about).to_owned()].into_iter().chain(names).collect()
            }
        }
    }

    pub(super) fn height(&self, width: i32) -> i32 {
        let lines = match self {
            Self::Series(_, names) => names.len(),
            Self::Keys(..) => self.places(width).last().map_or(1, |(_, line)| line + 1),
        };
        lines as i32 * LINE_HEIGHT + 6
    }

    /// Where each key stands: how far to the right, and on which line.
    fn places(&self, width: i32) -> Vec<(i32, usize)> {
        let Self::Keys(about, keys) = self else { return Vec::new() };
        let mut places = Vec::new();
        let about = if about.is_empty() { 0 } else { text_width(about, LABEL_PX) + BETWEEN };
        let (mut x, mut line) = (MARGIN + about, 0);
        for (_, name) in keys {
            let own = KEY_WIDTH + GAP + text_width(name, LABEL_PX);
            if x + own > width - MARGIN && x > MARGIN {
                (x, line) = (MARGIN, line + 1);
            }
            places.push((x, line));
            x += own + BETWEEN;
        }
        places
    }

    pub(super) fn draw(&self, canvas: &Canvas<'_>, (left, top): (i32, i32), width: i32) {
        let middle = |line: usize| top + line as i32 * LINE_HEIGHT + LINE_HEIGHT / 2 + 3;
        match self {
            Self::Series(mark, names) => {
                let text = left + MARGIN + MARK_WIDTH + GAP;
                for (series, name) in names.iter().enumerate() {
                    draw_mark(canvas, *mark, (left + MARGIN, middle(series)), series);
                    let name = shorten(name, left + width - MARGIN - text, LABEL_PX);
                    canvas.text(&name, (text, middle(series)), Font::new(LABEL_PX, Ink::Text));
                }
            }
            Self::Keys(about, keys) => {
                let muted = Font::new(LABEL_PX, Ink::Muted);
                canvas.text(about, (left + MARGIN, middle(0)), muted);
                for ((ink, name), (x, line)) in keys.iter().zip(self.places(width)) {
                    let (x, y) = (left + x, middle(line));
                    canvas.rect((x, y - 6), (x + KEY_WIDTH, y + 6), *ink);
                    let font = Font::new(LABEL_PX, Ink::Text);
                    canvas.text(name, (x + KEY_WIDTH + GAP, y), font);
                }
            }
        }
    }
}

fn draw_mark(canvas: &Canvas<'_>, mark: Mark, (x, y): (i32, i32), series: usize) {
    let (ink, right) = (Ink::Series(series), x + MARK_WIDTH);
    match mark {
        Mark::Bar => canvas.rect((x, y - 5), (right, y + 5), ink),
        Mark::Line => canvas.path(&[(x, y), (right, y)], ink, 2),
        Mark::End => draw_end(canvas, (i32::midpoint(x, right), y), series),
    }
}

/// An end of a dumbbell: a ring for the first policy, a dot for the second.
pub(super) fn draw_end(canvas: &Canvas<'_>, at: (i32, i32), series: usize) {
    if series == 0 {
        canvas.dot(at, 6, Ink::Series(series));
        canvas.dot(at, 4, Ink::Paper);
    } else {
        canvas.dot(at, 3, Ink::Series(series));
    }
}
