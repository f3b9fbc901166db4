//! Hunks whose context differs on one side.
//!
//! A neighbouring change on one side of a hunk is what most often stops a patch from applying to
//! another release. The other side is then still whole, and if it occurs once the place is certain:
//! the hunk gets the file's own lines on the side that differs.

use std::fmt::Write as _;
use std::ops::Range;

use crate::diff::hunk_size;

/// Fewest lines that may decide a place.
const LINES: usize = 3;

/// The diff with such hunks changed, and a note for each; nothing if a hunk stays without a place.
pub(crate) fn rehang(diff: &str, text: &str) -> Option<(String, Vec<String>)> {
    let file: Vec<&str> = text.lines().collect();
    let mut lines = diff.lines().peekable();
    let mut new = String::new();
    let mut notes = Vec::new();
    let mut number = 0;
    while let Some(heading) = lines.next() {
        let Some(_) = hunk_size(heading) else {
            _ = writeln!(new, "{heading}");
            continue;
        };
        number += 1;
        let mut body = Vec::new();
        while let Some(line) = lines.next_if(|line| hunk_size(line).is_none()) {
            body.push(line);
        }
        let hunk = Hunk { body };
        if places(&hunk.old(), &file).is_empty() {
            let (place, side) = hunk.place(&file)?;
            notes.push(format!(
                "hunk {number} placed at line {} by the lines {side} it",
                place.start + 1
            ));
            new.push_str(&hunk.at(place, &file));
        } else {
            _ = writeln!(new, "{heading}");
            hunk.body.iter().for_each(|line| _ = writeln!(new, "{line}"));
        }
    }
    (!notes.is_empty()).then_some((new, notes))
}

struct Hunk<'d> {
    body: Vec<&'d str>,
}

impl<'d> Hunk<'d> {
    /// The lines the hunk expects.
    fn old(&self) -> Vec<&'d str> {
        self.body
            .iter()
            .filter(|line| !line.starts_with(['+', '\\']))
            .map(|line| content(line))
            .collect()
    }

    /// How many lines of context it starts and ends with.
    fn context(&self) -> (usize, usize) {
        let is_context = |line: &&&str| !line.starts_with(['+', '-', '\\']);
        let before = self.body.iter().take_while(is_context).count();
        (before, self.body.iter().rev().take_while(is_context).count())
    }

    /// The file's lines it replaces or stands between, and the side that says so.
    fn place(&self, file: &[&str]) -> Option<(Range<usize>, &'static str)> {
        let old = self.old();
        let (before, after) = self.context();
        let by_rest = only(&old[before..], file).map(|at| at..at + old.len() - before - after);
        let by_start =
            only(&old[..old.len() - after], file).map(|at| at + before..at + old.len() - after);
        match (by_start, by_rest) {
            (Some(start), Some(rest)) => (start == rest).then_some((rest, "around")),
            (Some(start), None) => Some((start, "before")),
            (None, Some(rest)) => Some((rest, "after")),
            (None, None) => None,
        }
    }

    /// The hunk with the file's own lines as context.
    fn at(&self, place: Range<usize>, file: &[&str]) -> String {
        let (before, after) = self.context();
        let start = place.start.saturating_sub(LINES);
        let end = (place.end + LINES).min(file.len());
        let core = &self.body[before..self.body.len() - after];
        let added = core.iter().filter(|line| line.starts_with('+')).count();
        let size = end - start;
        let new_size = size - place.len()
            + added
            + core.iter().filter(|l| l.starts_with(' ') || l.is_empty()).count();
        let mut text = format!("@@ -{},{size} +{},{new_size} @@\n", start + 1, start + 1);
        for line in &file[start..place.start] {
            _ = writeln!(text, " {line}");
        }
        for line in core {
            _ = writeln!(text, "{line}");
        }
        for line in &file[place.end..end] {
            _ = writeln!(text, " {line}");
        }
        text
    }
}

/// A line without its mark; mailers drop the space of an empty one.
fn content(line: &str) -> &str {
    line.get(1..).unwrap_or_default()
}

/// Where `wanted` occurs in `file`.
fn places(wanted: &[&str], file: &[&str]) -> Vec<usize> {
    let windows = file.windows(wanted.len().max(1)).enumerate();
    windows.filter(|(_, lines)| *lines == wanted).map(|(at, _)| at).collect()
}

/// The one place where enough lines occur.
fn only(wanted: &[&str], file: &[&str]) -> Option<usize> {
    match places(wanted, file)[..] {
        [at] if wanted.len() >= LINES => Some(at),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str =
        "a\nstruct one {\n\tint x;\n};\n\nstruct two {\n\tint x;\n\tint y;\n};\n\n#define LAST\n";

    #[test]
    fn the_lines_after_a_hunk_place_it() {
        let diff = "--- a/f\n+++ b/f\n@@ -1,6 +1,7 @@ struct two {\n \tint y;\n \tint gone;\n \tint more;\n+\tint z;\n };\n \n #define LAST\n";
        let (new, notes) = rehang(diff, FILE).unwrap();
        assert_eq!(notes, ["hunk 1 placed at line 9 by the lines after it"]);
        let expected = "--- a/f\n+++ b/f\n@@ -6,6 +6,7 @@\n struct two {\n \tint x;\n \tint y;\n+\tint z;\n };\n \n #define LAST\n";
        assert_eq!(new, expected);
    }

    #[test]
    fn lines_that_occur_twice_place_nothing() {
        let diff = "--- a/f\n+++ b/f\n@@ -1,3 +1,4 @@\n \tint y;\n \tint gone;\n+\tint z;\n };\n \n struct other {\n";
        assert!(rehang(diff, FILE).is_none());
    }
}
