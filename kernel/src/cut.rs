//! Cutting what is wanted, and whatever that names, out of a tree's text.
//!
//! Nothing is moved: what is not wanted becomes empty lines, so the compiler's messages and the
//! debug information carry the tree's own line numbers after a single `#line`. Conditional sections
//! that hold something wanted stay as they are, and the compiler decides between their branches.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::Write as _;
use std::ops::Range;

use crate::items::{ItemKind, Mention, Name, SourceFile};

/// Which items of a header to write: a type must come before the stand-ins that hold one, a
/// function after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    Types,
    Functions,
    Everything,
}

impl Pass {
    fn takes(self, kind: ItemKind) -> bool {
        let is_type = matches!(kind, ItemKind::Type | ItemKind::Macro { .. });
        match self {
            Self::Types => is_type,
            Self::Functions => !is_type,
            Self::Everything => true,
        }
    }
}

/// The wanted items of a set of files.
#[derive(Debug)]
pub(crate) struct Cut {
    pub(crate) files: Vec<SourceFile>,
    /// For each file, the indices of its wanted items.
    wanted: Vec<BTreeSet<usize>>,
    /// Names that were met and that the files define, but that are not taken from them.
    pub(crate) replaced: BTreeSet<String>,
}

impl Cut {
    /// Selects what `roots` mention and whatever that mentions in turn, except the names in `have`.
    /// Of the names in `own` only declarations, types and macros are taken: another file defines them.
    pub(crate) fn new(
        files: Vec<SourceFile>,
        roots: BTreeSet<Mention>,
        have: &HashSet<Name>,
        own: &HashSet<Name>,
    ) -> Self {
        let index = index(&files);
        let mut wanted = vec![BTreeSet::new(); files.len()];
        let mut todo: Vec<Mention> = roots.into_iter().collect();
        let mut seen: HashSet<(Name, bool)> = HashSet::new();
        let mut replaced = BTreeSet::new();
        while let Some(mention) = todo.pop() {
            if have.contains(&mention.name) && index.contains_key(&mention.name) {
                replaced.insert(mention.name.text().to_owned());
            }
            if have.contains(&mention.name) || !seen.insert((mention.name.clone(), mention.called))
            {
                continue;
            }
            for &(file, item) in index.get(&mention.name).into_iter().flatten() {
                let kind = files[file].items[item].kind;
                let defined_elsewhere = kind == ItemKind::Function && own.contains(&mention.name);
                if !defined_elsewhere && is_meant(kind, &mention) && wanted[file].insert(item) {
                    todo.extend(files[file].mentions(&files[file].items[item].span));
                }
            }
        }
        Self { files, wanted, replaced }
    }

    /// The names that were cut, with the file each is in.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().zip(&self.wanted).flat_map(|(file, wanted)| {
            let items = wanted.iter().map(|i| &file.items[*i]);
            items.flat_map(|i| &i.names).map(|n| (file.path.as_str(), n.text()))
        })
    }

    /// `file` with everything but its wanted items of this pass blanked.
    pub(crate) fn render(
        &self,
        file: usize,
        pass: Pass,
        keep_include: impl Fn(&str) -> bool,
    ) -> String {
        let source = &self.files[file];
        let items = self.wanted[file].iter().map(|i| &source.items[*i]);
        let mut kept: Vec<Range<usize>> =
            items.filter(|i| pass.takes(i.kind)).map(|i| i.span.clone()).collect();
        let includes = source.includes.iter().filter(|(header, _)| keep_include(header));
        kept.extend(includes.map(|(_, span)| span.clone()));
        kept.sort_by_key(|span| span.start);
        for conditional in &source.conditionals {
            let span = conditional.span();
            let next = kept.partition_point(|k| k.start < span.start);
            if kept.get(next).is_some_and(|k| k.end <= span.end) {
                kept.extend(conditional.directives.iter().cloned());
                kept.sort_by_key(|span| span.start);
            }
        }
        blank_all_but(source, &kept)
    }
}

/// A function or a macro with arguments is meant only where it is called; as a plain word it would
/// be a local variable of the same name.
fn is_meant(kind: ItemKind, mention: &Mention) -> bool {
    match kind {
        ItemKind::Function | ItemKind::Prototype | ItemKind::Macro { takes_arguments: true } => {
            mention.called
        }
        ItemKind::Type | ItemKind::Macro { .. } | ItemKind::Variable => true,
    }
}

fn index(files: &[SourceFile]) -> HashMap<Name, Vec<(usize, usize)>> {
    let mut index: HashMap<Name, Vec<(usize, usize)>> = HashMap::new();
    for (f, file) in files.iter().enumerate() {
        for (i, item) in file.items.iter().enumerate() {
            for name in &item.names {
                index.entry(name.clone()).or_default().push((f, i));
            }
        }
    }
    index
}

fn blank_all_but(source: &SourceFile, kept: &[Range<usize>]) -> String {
    let mut out = format!("#line 1 \"{}\"\n", source.path);
    let mut at = 0;
    for span in kept {
        let newlines = source.text[at..span.start].bytes().filter(|c| *c == b'\n').count();
        out.extend(std::iter::repeat_n('\n', newlines));
        if !out.ends_with('\n') {
            out.push(' ');
        }
        out.push_str(&source.text[span.clone()]);
        at = span.end;
    }
    _ = writeln!(out);
    out
}
