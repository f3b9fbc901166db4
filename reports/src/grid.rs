//! Aligned columns of plain text.

use anstyle::Style as Ansi;

/// A cell: its text, and how a terminal that has colours shows it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    text: String,
    ansi: Ansi,
}

impl Cell {
    pub(crate) fn painted(text: impl Into<String>, ansi: Ansi) -> Self {
        Self { text: text.into(), ansi }
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), ansi: Ansi::new() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Align {
    Left,
    Right,
}

enum Line {
    /// Cells in columns.
    Cells(Vec<Cell>),
    /// Text across all columns, which does not widen them.
    Across(Cell),
}

/// Lines of cells in columns as wide as their widest cell.
pub(crate) struct Grid {
    aligns: Vec<Align>,
    lines: Vec<Line>,
    gap: usize,
}

impl Grid {
    /// Columns by their alignment: `l` is left, anything else right.
    pub(crate) fn new(aligns: &str) -> Self {
        let align = |letter| if letter == 'l' { Align::Left } else { Align::Right };
        Self { aligns: aligns.chars().map(align).collect(), lines: Vec::new(), gap: 2 }
    }

    pub(crate) fn push(&mut self, cells: Vec<Cell>) {
        debug_assert_eq!(cells.len(), self.aligns.len());
        self.lines.push(Line::Cells(cells));
    }

    pub(crate) fn push_across(&mut self, cell: impl Into<Cell>) {
        self.lines.push(Line::Across(cell.into()));
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths = vec![0; self.aligns.len()];
        for line in &self.lines {
            let Line::Cells(cells) = line else { continue };
            for (width, cell) in widths.iter_mut().zip(cells) {
                *width = cell.width().max(*width);
            }
        }
        widths
    }

    /// How wide it is with its columns aligned.
    pub(crate) fn width(&self) -> usize {
        let widths = self.widths();
        widths.iter().sum::<usize>() + self.gap * widths.len().saturating_sub(1)
    }

    /// The text, each line with a line feed and without trailing spaces.
    pub(crate) fn render(&self, colour: bool) -> String {
        let widths = self.widths();
        let mut out = String::new();
        for line in &self.lines {
            match line {
                Line::Cells(cells) => self.render_cells(cells, &widths, colour, &mut out),
                Line::Across(cell) => out.push_str(&paint(&cell.text, cell.ansi, colour)),
            }
            out.push('\n');
        }
        out
    }

    fn render_cells(&self, cells: &[Cell], widths: &[usize], colour: bool, out: &mut String) {
        let mut owed = 0;
        for ((cell, width), align) in cells.iter().zip(widths).zip(&self.aligns) {
            let padding = width - cell.width();
            if *align == Align::Right {
                owed += padding;
            }
            if !cell.text.is_empty() {
                out.extend(std::iter::repeat_n(' ', owed));
                out.push_str(&paint(&cell.text, cell.ansi, colour));
                owed = 0;
            }
            if *align == Align::Left {
                owed += padding;
            }
            owed += self.gap;
        }
    }
}

/// `text` in a terminal style, if it may have one.
pub(crate) fn paint(text: &str, ansi: Ansi, colour: bool) -> String {
    if colour && ansi != Ansi::new() && !text.is_empty() {
        format!("{ansi}{text}{ansi:#}")
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align_without_trailing_spaces() {
        let mut grid = Grid::new("lrr");
        grid.push(vec!["".into(), "a".into(), "change".into()]);
        grid.push_across("Folios that were inserted");
        grid.push(vec!["  order 0".into(), "9721".into(), "".into()]);
        assert_eq!(grid.width(), 9 + 2 + 4 + 2 + 6);
        let text = "              a  change\nFolios that were inserted\n  order 0  9721\n";
        assert_eq!(grid.render(false), text);
    }

    #[test]
    fn colour_does_not_move_columns() {
        let mut grid = Grid::new("lr");
        grid.push(vec![Cell::painted("a", Ansi::new().bold()), "1".into()]);
        grid.push(vec!["bc".into(), "20".into()]);
        assert_eq!(grid.render(true), "\u{1b}[1ma\u{1b}[0m    1\nbc  20\n");
    }
}
