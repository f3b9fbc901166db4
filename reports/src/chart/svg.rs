//! From what plotters draws to the SVG that is written.
//!
//! plotters writes one element to a line, its colour as an attribute. The
//! colours become classes, which a style sheet inside the document gives a
//! value for light and for dark paper; the attributes stay for viewers that
//! read no style sheets. Cells of one colour that follow each other become one
//! element.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use super::canvas::Canvas;
use super::style::{Ink, SERIES, dashes, pattern};

const FONT_FAMILY: &str = "Inter, system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', \
    'Liberation Sans', 'DejaVu Sans', sans-serif";

static INK_OF_COLOUR: LazyLock<BTreeMap<String, Ink>> =
    LazyLock::new(|| Ink::all().map(|ink| (ink.light(), ink)).collect());

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
    size: (i32, i32),
    draw: impl FnOnce(&Canvas<'_>),
) -> String {
    let mut raw = String::new();
    let canvas = Canvas::svg(&mut raw, size);
    canvas.rect((0, 0), size, Ink::Paper);
    draw(&canvas);
    canvas.finish();
    finish(&raw, meta, size)
}

fn finish(raw: &str, meta: &Meta<'_>, (width, height): (i32, i32)) -> String {
    let Meta { id, title, description } = meta;
    let mut body = Body { id, used: BTreeSet::new(), out: String::new(), cells: None };
    let mut lines = raw.lines().filter(|line| !line.starts_with("<svg"));
    while let Some(line) = lines.next() {
        if line.starts_with("<text") {
            // Its content and its end are on lines of their own.
            let text: String = [line].into_iter().chain(lines.by_ref().take(2)).collect();
            body.element(&text);
        } else {
            body.element(line);
        }
    }
    body.end_cells();
    let used: Vec<Ink> = Ink::all().filter(|ink| body.used.contains(&ink.class())).collect();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" role=\"img\" \
         aria-labelledby=\"{id}-title {id}-desc\" font-family=\"{FONT_FAMILY}\">\n\
         <title id=\"{id}-title\">{}</title>\n<desc id=\"{id}-desc\">{}</desc>\n{}{}{}",
        escape(title),
        escape(description),
        style_sheet(&used),
        patterns(id, &used),
        body.out,
    )
}

/// Text as the content of an element.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn style_sheet(inks: &[Ink]) -> String {
    let rules = |colour: fn(Ink) -> String| {
        let rule = |ink: &Ink| {
            let (class, colour) = (ink.class(), colour(*ink));
            format!(".{class}{{fill:{colour}}}.{class}-l{{stroke:{colour}}}")
        };
        inks.iter().map(rule).collect::<String>()
    };
    let (light, dark) = (rules(Ink::light), rules(Ink::dark));
    // On paper it is light, whatever the screen.
    format!("<style>{light}@media screen and (prefers-color-scheme:dark){{{dark}}}</style>\n")
}

/// Patterns of the series: strokes of paper over the colour.
fn patterns(id: &str, inks: &[Ink]) -> String {
    let paper = Ink::Paper;
    let define = |series| {
        let ink = Ink::Series(series);
        let strokes = pattern(series).filter(|_| inks.contains(&ink))?;
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
    let patterns: String = (0..SERIES).filter_map(define).collect();
    if patterns.is_empty() { patterns } else { format!("<defs>\n{patterns}</defs>\n") }
}

/// The elements as they are rewritten.
struct Body<'a> {
    id: &'a str,
    /// Classes of inks, without those of strokes.
    used: BTreeSet<String>,
    out: String,
    /// Rectangles of one ink, as the outline of a path.
    cells: Option<(Ink, String)>,
}

impl Body<'_> {
    /// An element with its colour as a class, and without attributes that say nothing.
    fn element(&mut self, line: &str) {
        let fill = ink_after(line, "fill=\"");
        if let (Some(ink), Some(rect)) = (fill, rect_of(line))
            && !matches!(ink, Ink::Series(_) | Ink::Paper)
        {
            return self.cell(ink, rect);
        }
        self.end_cells();
        let mut line = line
            .replace(" opacity=\"1\"", "")
            .replace(" stroke=\"none\"", "")
            .replace(" font-family=\"sans-serif\"", "")
            .replace("font-weight=\"bold\"", "font-weight=\"600\"")
            .replace(" \"/>", "\"/>");
        let stroke = ink_after(&line, "stroke=\"");
        for (ink, attribute) in [(fill, "fill"), (stroke, "stroke")] {
            let Some(ink) = ink else { continue };
            self.used.insert(ink.class());
            let plain = format!("{attribute}=\"{}\"", ink.light());
            line = line.replace(&plain, &self.coloured(&line, ink, &plain));
        }
        self.out += &line;
        self.out.push('\n');
    }

    /// The attributes that stand for a plain colour.
    fn coloured(&self, line: &str, ink: Ink, plain: &str) -> String {
        let class = ink.class();
        match ink {
            Ink::Series(series) if plain.starts_with("stroke") => {
                let dashes: Vec<String> = dashes(series).iter().map(i32::to_string).collect();
                let dashes = match &dashes[..] {
                    [] => String::new(),
                    dashes => format!(" stroke-dasharray=\"{}\"", dashes.join(" ")),
                };
                format!("{plain} class=\"{class}-l\"{dashes}")
            }
            Ink::Series(series) if pattern(series).is_some() && line.starts_with("<rect") => {
                format!("fill=\"url(#{}-p{})\"", self.id, series % SERIES)
            }
            _ if plain.starts_with("stroke") => format!("{plain} class=\"{class}-l\""),
            _ => format!("{plain} class=\"{class}\""),
        }
    }

    fn cell(&mut self, ink: Ink, [x, y, width, height]: [&str; 4]) {
        if self.cells.as_ref().is_none_or(|(other, _)| *other != ink) {
            self.end_cells();
        }
        let (_, outline) = self.cells.get_or_insert((ink, String::new()));
        *outline += &format!("M{x} {y}h{width}v{height}h-{width}z");
    }

    fn end_cells(&mut self) {
        let Some((ink, outline)) = self.cells.take() else { return };
        let class = ink.class();
        self.out +=
            &format!("<path d=\"{outline}\" fill=\"{}\" class=\"{class}\"/>\n", ink.light());
        self.used.insert(class);
    }
}

/// The ink whose colour stands after `attribute`.
fn ink_after(line: &str, attribute: &str) -> Option<Ink> {
    let at = line.find(attribute)? + attribute.len();
    INK_OF_COLOUR.get(line.get(at..at + 7)?).copied()
}

/// Place and size of a rectangle.
fn rect_of(line: &str) -> Option<[&str; 4]> {
    let rest = line.strip_prefix("<rect x=\"")?;
    let mut values = rest.split('"').step_by(2);
    Some([values.next()?, values.next()?, values.next()?, values.next()?])
}
