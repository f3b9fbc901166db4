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
