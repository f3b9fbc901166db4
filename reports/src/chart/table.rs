//! The figures of a chart as people read them.

/// A table with some columns for each group, such as a policy.
pub(crate) struct Table {
    pub(crate) caption: String,
    /// What the rows are.
    pub(crate) head: &'static str,
    /// Names of the groups.
    pub(crate) groups: Vec<String>,
    /// Columns of each group.
    pub(crate) columns: Vec<&'static str>,
    pub(crate) rows: Vec<TableRow>,
}

pub(crate) struct TableRow {
    pub(crate) name: String,
    pub(crate) total: bool,
    /// Columns of the first group, then those of the next.
    pub(crate) cells: Vec<String>,
}

impl TableRow {
    /// A row like any other.
    pub(crate) fn new(name: impl Into<String>, cells: Vec<String>) -> Self {
        Self { name: name.into(), total: false, cells }
    }
}
