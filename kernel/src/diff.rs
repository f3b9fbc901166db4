//! Unified diffs as they come in letters.

/// What a diff does to one file.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    /// Path within the tree.
    pub(crate) path: String,
    /// From `---` to the last line of the last hunk.
    pub(crate) text: String,
}

/// The text of a letter without its quotation marks, and with the spaces that mailers make no-break
/// ones.
pub(crate) fn unquoted(text: &str) -> String {
    let text = text.replace('\u{a0}', " ");
    let unquote = |line: &str| {
        let marks = line.bytes().take_while(|c| matches!(c, b'>' | b' ')).collect::<Vec<u8>>();
        let end = marks.iter().rposition(|c| *c == b'>').map_or(0, |last| last + 1);
        let rest = &line[end..];
        format!("{}\n", rest.strip_prefix(' ').filter(|_| end > 0).unwrap_or(rest))
    };
    text.lines().map(unquote).collect()
}

/// The parts of `text` that are a diff, by file.
pub(crate) fn sections(text: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    let mut lines = text.lines().peekable();
    // Lines that the hunk being read still has to have, before and after.
    let mut open = (0u64, 0u64);
    while let Some(line) = lines.next() {
        if open != (0, 0) {
            // No line of a hunk: the end of its heading, which a mailer wrapped.
            if !line.is_empty() && !line.starts_with(['+', '-', ' ', '\\', '\t']) {
                continue;
            }
            if let Some(section) = sections.last_mut() {
                push(section, line);
            }
            open = match line.as_bytes().first() {
                Some(b'-') => (open.0.saturating_sub(1), open.1),
                Some(b'+') => (open.0, open.1.saturating_sub(1)),
                Some(b'\\') => open,
                _ => (open.0.saturating_sub(1), open.1.saturating_sub(1)),
            };
        } else if let Some(old) = line.strip_prefix("--- ") {
            let Some(new) = lines.peek().and_then(|next| next.strip_prefix("+++ ")) else {
                continue;
            };
            sections.extend(
                section_path(old, new)
                    .map(|path| Section { path, text: format!("{line}\n+++ {new}\n") }),
            );
            lines.next();
        } else if let (Some(size), Some(section)) = (hunk_size(line), sections.last_mut()) {
            push(section, line);
            open = size;
        }
    }
    sections
}

fn push(section: &mut Section, line: &str) {
    section.text.push_str(line);
    section.text.push('\n');
}

/// The path after `a/` or `b/`; of the two the one that is not `/dev/null`. A deleted file has none.
fn section_path(old: &str, new: &str) -> Option<String> {
    let path = |name: &str| {
        name.split(['\t', ' '])
            .next()
            .unwrap_or_default()
            .split_once('/')
            .map(|(_, p)| p.to_owned())
    };
    let inside = |p: &String| !p.split('/').any(|part| part == ".." || part.is_empty());
    let name = if new.starts_with("/dev/null") { old } else { new };
    path(name).filter(inside)
}

/// `@@ -1413,6 +1413,7 @@`: the lines before and after.
pub(crate) fn hunk_size(line: &str) -> Option<(u64, u64)> {
    let ranges = line.strip_prefix("@@ -")?.split(" @@").next()?;
    let (before, after) = ranges.split_once(" +")?;
    let size = |range: &str| match range.split_once(',') {
        Some((_, n)) => n.parse().ok(),
        None => Some(1),
    };
    Some((size(before)?, size(after)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let shown = |s: &Section| format!("{}: {} lines", s.path, s.text.lines().count());
        sections(text).iter().map(shown).collect()
    }

    #[test]
    fn what_looks_like_a_heading_inside_a_hunk_is_not_one() {
        let text =
            "--- a/mm/x.c\n+++ b/mm/x.c\n@@ -1,2 +1,2 @@\n--- a/y.c\n+++ b/y.c\n c\n-- \n2.43.0\n";
        assert_eq!(shown(text), ["mm/x.c: 6 lines"]);
    }

    #[test]
    fn paths_stay_below_the_tree() {
        let diff = |old: &str, new: &str| format!("--- {old}\n+++ {new}\n@@ -1 +1 @@\n-a\n+b\n");
        assert_eq!(
            shown(&diff("/dev/null", "b/include/linux/n.h\t2026-01-01")),
            ["include/linux/n.h: 5 lines"]
        );
        assert_eq!(shown(&diff("a/gone.c", "/dev/null")), ["gone.c: 5 lines"]);
        assert_eq!(shown(&diff("a/../x", "b/../x")), [""; 0]);
    }

    proptest::proptest! {
        #[test]
        fn any_text_has_sections(text in "([-+@ >][-+@ 0-9,a-z/.]*\n)*") {
            let _ = sections(&unquoted(&text));
            for section in sections(&text) {
                let _ = crate::rehang::rehang(&section.text, &text);
            }
        }
    }
}
