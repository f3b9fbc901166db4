//! From what plotters draws to the SVG that is written.
//!
//! plotters writes one element to a line, its colour as an attribute. The
//! colours become classes, which a style sheet inside the document gives a
//! value for light and for dark paper; the attributes stay for viewers that
//! read no style sheets.

use super::canvas::Canvas;
use super::style::{Ink, SERIES, dashes, pattern};

const FONT_FAMILY: &str =
    "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif";

/// What a document says about itself.
pub(super) struct Meta<'a> {
    /// Unique among the documents of a page.
    pub(super) id: &'a str,
    /// Its name.
    pub(super) title: &'a str,
    /// What it shows, for those who do not see it.
    pub(super) description: &'a str,
}

/// A document of the given size, drawn by `draw`.
pub(super) fn document(
    meta: &Meta<'_>,
    (width, height): (i32, i32),
    draw: impl FnOnce(&Canvas<'_>),
) -> String {
    let mut raw = String::new();
    let canvas = Canvas::new(&mut raw, width, height);
    draw(&canvas);
    canvas.finish();
    finish(&raw, meta, (width, height))
}

fn finish(raw: &str, meta: &Meta<'_>, (width, height): (i32, i32)) -> String {
    let Meta { id, title, description } = meta;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" role=\"img\" \
         aria-labelledby=\"{id}-title {id}-desc\" font-family=\"{FONT_FAMILY}\">\n\
         <title id=\"{id}-title\">{}</title>\n<desc id=\"{id}-desc\">{}</desc>\n",
        escape(title),
        escape(description)
    );
    out += &style_sheet();
    out += &patterns(id);
    for line in raw.lines().filter(|line| !line.starts_with("<svg")) {
        out += &element(line, id);
        out.push('\n');
    }
    out
}

/// Text as the content of an element.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn style_sheet() -> String {
    let rules = |colour: fn(Ink) -> String| {
        let rule = |ink: Ink| {
            let (class, colour) = (ink.class(), colour(ink));
            format!(".{class}{{fill:{colour}}}.{class}-l{{stroke:{colour}}}")
        };
        Ink::all().map(rule).collect::<String>()
    };
    let (light, dark) = (rules(Ink::light), rules(Ink::dark));
    format!("<style>{light}@media (prefers-color-scheme:dark){{{dark}}}</style>\n")
}

/// Patterns of the series: strokes of paper over the colour.
fn patterns(id: &str) -> String {
    let paper = Ink::Paper;
    let define = |series| {
        let strokes = pattern(series)?;
        let ink = Ink::Series(series);
        Some(format!(
            "<pattern id=\"{id}-p{series}\" width=\"6\" height=\"6\" \
             patternUnits=\"userSpaceOnUse\"><rect width=\"6\" height=\"6\" fill=\"{}\" \
             class=\"{}\"/><path d=\"{strokes}\" fill=\"none\" stroke=\"{}\" \
             stroke-width=\"1.4\" class=\"{}-l\"/></pattern>\n",
            ink.light(),
            ink.class(),
            paper.light(),
            paper.class(),
        ))
    };
    format!("<defs>\n{}</defs>\n", (0..SERIES).filter_map(define).collect::<String>())
}

/// An element with its colour as a class, and without attributes that say nothing.
fn element(line: &str, id: &str) -> String {
    let mut line = line
        .replace(" opacity=\"1\"", "")
        .replace(" stroke=\"none\"", "")
        .replace(" font-family=\"sans-serif\"", "")
        .replace(" \"/>", "\"/>");
    for ink in Ink::all() {
        let (fill, stroke) =
            (format!("fill=\"{}\"", ink.light()), format!("stroke=\"{}\"", ink.light()));
        if line.contains(&fill) {
            let filled = match ink {
                Ink::Series(series) if pattern(series).is_some() && line.starts_with("<rect") => {
                    format!("fill=\"url(#{id}-p{series})\"")
                }
                _ => format!("{fill} class=\"{}\"", ink.class()),
            };
            line = line.replace(&fill, &filled);
        } else if line.contains(&stroke) {
            let dash = match ink {
                Ink::Series(series) => dashes(series),
                _ => None,
            };
            let dash = dash.map(|dash| format!(" stroke-dasharray=\"{dash}\"")).unwrap_or_default();
            let stroked = format!("{stroke} class=\"{}-l\"{dash}", ink.class());
            line = line.replace(&stroke, &stroked);
        }
    }
    line
}
