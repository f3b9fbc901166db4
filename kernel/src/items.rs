//! The file-scope items of a C file: what each defines, what it refers to, and the conditional
//! sections around it.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::lex::{self, Kind, Token};

/// A name in one of C's two name spaces that matter at file scope.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Name {
    /// A `struct`, `union` or `enum` tag.
    Tag(String),
    /// A function, variable, typedef, enumerator or macro.
    Plain(String),
}

impl Name {
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Tag(name) | Self::Plain(name) => name,
        }
    }
}

/// What an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ItemKind {
    Function,
    /// Declaration of a function.
    Prototype,
    /// `struct`, `union`, `enum` or `typedef`.
    Type,
    /// `#define`, and the `#undef`s of the same name.
    Macro {
        takes_arguments: bool,
    },
    Variable,
}

/// One item and the bytes it covers.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) kind: ItemKind,
    pub(crate) names: Vec<Name>,
    pub(crate) span: Range<usize>,
}

/// How a name is mentioned.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mention {
    pub(crate) name: Name,
    /// Followed by an opening parenthesis.
    pub(crate) called: bool,
}

/// A file-scope `#if` to `#endif`.
#[derive(Clone, Debug)]
pub(crate) struct Conditional {
    /// Its `#if`, `#elif`, `#else` and `#endif` lines.
    pub(crate) directives: Vec<Range<usize>>,
}

impl Conditional {
    /// From the start of the `#if` line to the end of the `#endif` line.
    pub(crate) fn span(&self) -> Range<usize> {
        let first = self.directives.first().map_or(0, |d| d.start);
        let last = self.directives.last().map_or(0, |d| d.end);
        first..last
    }
}

/// A file taken apart.
#[derive(Clone, Debug)]
pub(crate) struct SourceFile {
    /// Path within the tree.
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) items: Vec<Item>,
    pub(crate) conditionals: Vec<Conditional>,
    /// `#include` lines and the header each names.
    pub(crate) includes: Vec<(String, Range<usize>)>,
    tokens: Vec<Token>,
}

impl SourceFile {
    pub(crate) fn new(path: &str, text: String) -> Self {
        let tokens = lex::tokens(&text);
        let mut scan = Scan { text: &text, ..Scan::default() };
        for token in &tokens {
            scan.take(token);
        }
        let Scan { items, conditionals, includes, .. } = scan;
        Self { path: path.to_owned(), items, conditionals, includes, tokens, text }
    }

    /// The names mentioned within `span`.
    pub(crate) fn mentions(&self, span: &Range<usize>) -> BTreeSet<Mention> {
        let first = self.tokens.partition_point(|t| t.span.start < span.start);
        let last = self.tokens.partition_point(|t| t.span.start < span.end);
        let mut found = BTreeSet::new();
        collect_mentions(&self.text, &self.tokens[first..last], &mut found);
        found
    }

    /// The names mentioned anywhere in the file.
    pub(crate) fn all_mentions(&self) -> BTreeSet<Mention> {
        self.mentions(&(0..self.text.len()))
    }

    /// The line `offset` is on, from 1.
    pub(crate) fn line(&self, offset: usize) -> u32 {
        let newlines = self.text[..offset].matches('\n').count();
        newlines as u32 + 1
    }
}

fn collect_mentions(text: &str, tokens: &[Token], found: &mut BTreeSet<Mention>) {
    let mut before: Option<&Token> = None;
    for (i, token) in tokens.iter().enumerate() {
        match token.kind {
            Kind::Directive => collect_mentions(text, &directive_body(text, token), found),
            Kind::Word if !is_member(text, before, i, tokens) => {
                let name = token.text(text).to_owned();
                let tagged = before.is_some_and(|b| is_tag_keyword(b.text(text)));
                let name = if tagged { Name::Tag(name) } else { Name::Plain(name) };
                let called = tokens.get(i + 1).is_some_and(|t| t.is(b'('));
                found.insert(Mention { name, called });
            }
            _ => {}
        }
        before = Some(token);
    }
}

/// Follows `.` or `->`.
fn is_member(text: &str, before: Option<&Token>, i: usize, tokens: &[Token]) -> bool {
    match before {
        Some(b) if b.is(b'.') => i < 2 || !tokens[i - 2].is(b'.'),
        Some(b) if b.is(b'>') => {
            i >= 2 && tokens[i - 2].is(b'-') && tokens[i - 2].span.end == b.span.start
        }
        Some(b) => b.text(text) == "goto",
        None => false,
    }
}

fn is_tag_keyword(word: &str) -> bool {
    matches!(word, "struct" | "union" | "enum")
}

/// What a directive refers to: the body of a `#define`, the condition of an `#if`.
fn directive_body(text: &str, directive: &Token) -> Vec<Token> {
    let tokens = lex::directive_tokens(text, directive.span.clone());
    let skip = match tokens.first().map(|t| t.text(text)) {
        Some("define") => 2,
        Some("include" | "undef" | "pragma" | "error" | "warning") | None => tokens.len(),
        Some(_) => 1,
    };
    tokens.into_iter().skip(skip).collect()
}

/// Annotations that look like a function's name and parameters.
const ANNOTATIONS: [&str; 14] = [
    "__attribute__",
    "__printf",
    "__scanf",
    "__malloc",
    "__alloc_size",
    "__realloc_size",
    "__aligned",
    "__section",
    "__releases",
    "__acquires",
    "__must_hold",
    "__counted_by",
    "__cond_acquires",
    "__context_unsafe",
];

#[derive(Default)]
struct Scan<'t> {
    text: &'t str,
    items: Vec<Item>,
    conditionals: Vec<Conditional>,
    includes: Vec<(String, Range<usize>)>,
    /// Open file-scope conditionals, as indices into `conditionals`.
    open: Vec<usize>,
    /// Open conditionals within an item, with the bracket depth at their `#if`.
    inner: Vec<u32>,
    /// Tokens of the item being read.
    pending: Vec<Token>,
    depth: u32,
    /// Where the first brace at depth 0 of the item is.
    body: Option<usize>,
}

impl Scan<'_> {
    fn take(&mut self, token: &Token) {
        match token.kind {
            Kind::Directive if self.pending.is_empty() => self.directive(token),
            Kind::Directive => self.inner_directive(token),
            Kind::Punct(b'(' | b'[' | b'{') => {
                if token.is(b'{') && self.depth == 0 && self.body.is_none() {
                    self.body = Some(self.pending.len());
                }
                self.pending.push(token.clone());
                self.depth += 1;
            }
            Kind::Punct(b')' | b']' | b'}') => {
                self.depth = self.depth.saturating_sub(1);
                self.pending.push(token.clone());
                if token.is(b'}') && self.depth == 0 && self.is_function() {
                    self.finish();
                }
            }
            Kind::Punct(b';') if self.depth == 0 => {
                self.pending.push(token.clone());
                self.finish();
            }
            _ => self.pending.push(token.clone()),
        }
    }

    fn directive(&mut self, token: &Token) {
        let words = lex::directive_tokens(self.text, token.span.clone());
        let word = |i: usize| words.get(i).map_or("", |t| t.text(self.text));
        match word(0) {
            "if" | "ifdef" | "ifndef" => {
                self.open.push(self.conditionals.len());
                self.conditionals.push(Conditional { directives: vec![token.span.clone()] });
            }
            "elif" | "else" => {
                if let Some(&i) = self.open.last() {
                    self.conditionals[i].directives.push(token.span.clone());
                }
            }
            "endif" => {
                if let Some(i) = self.open.pop() {
                    self.conditionals[i].directives.push(token.span.clone());
                }
            }
            "define" | "undef" => {
                let takes_arguments = words.len() > 2
                    && words[2].is(b'(')
                    && words[1].span.end == words[2].span.start;
                let names = vec![Name::Plain(word(1).to_owned())];
                self.items.push(Item {
                    kind: ItemKind::Macro { takes_arguments },
                    names,
                    span: token.span.clone(),
                });
            }
            "include" => {
                let line = &self.text[token.span.clone()];
                let header = line.split(['"', '<', '>']).nth(1).unwrap_or_default();
                self.includes.push((header.to_owned(), token.span.clone()));
            }
            _ => {}
        }
    }

    /// Each branch of a conditional inside an item starts from the bracket depth of the first.
    fn inner_directive(&mut self, token: &Token) {
        let words = lex::directive_tokens(self.text, token.span.clone());
        match words.first().map_or("", |t| t.text(self.text)) {
            "if" | "ifdef" | "ifndef" => self.inner.push(self.depth),
            "elif" | "else" => self.depth = self.inner.last().copied().unwrap_or(self.depth),
            "endif" => _ = self.inner.pop(),
            _ => {}
        }
        self.pending.push(token.clone());
    }

    fn head(&self) -> &[Token] {
        &self.pending[..self.body.unwrap_or(self.pending.len())]
    }

    /// A body that follows parentheses and belongs to no type and no initialiser.
    fn is_function(&self) -> bool {
        self.body.is_some() && function_name(self.text, self.head()).is_some()
    }

    fn finish(&mut self) {
        if let Some((kind, names)) = self.classify() {
            let span = self.pending[0].span.start..self.pending[self.pending.len() - 1].span.end;
            self.items.push(Item { kind, names, span });
        }
        self.pending.clear();
        self.inner.clear();
        self.body = None;
        self.depth = 0;
    }

    fn classify(&self) -> Option<(ItemKind, Vec<Name>)> {
        let head = self.head();
        let word = |t: &Token| t.text(self.text).to_owned();
        let is_typedef = head.iter().any(|t| t.text(self.text) == "typedef");
        let mut names = self.tag_and_enumerators(head);
        if is_typedef {
            names.extend(declared_name(self.text, &self.pending).map(Name::Plain));
            return Some((ItemKind::Type, names));
        }
        if let Some(name) = function_name(self.text, head) {
            let kind = if self.body.is_some() { ItemKind::Function } else { ItemKind::Prototype };
            return Some((kind, vec![Name::Plain(word(&head[name]))]));
        }
        if self.body.is_some() && !names.is_empty() && !has_initialiser(head) {
            return Some((ItemKind::Type, names));
        }
        if self.body.is_none()
            && head.iter().any(|t| is_tag_keyword(t.text(self.text)))
            && head.len() <= 3
        {
            return None; // `struct x;` says nothing that a mention does not.
        }
        let name = declared_name(self.text, &self.pending)?;
        Some((ItemKind::Variable, vec![Name::Plain(name)]))
    }

    fn tag_and_enumerators(&self, head: &[Token]) -> Vec<Name> {
        let Some(body) = self.body else { return Vec::new() };
        let Some(keyword) = head.iter().rposition(|t| is_tag_keyword(t.text(self.text))) else {
            return Vec::new();
        };
        let mut names = Vec::new();
        if let Some(tag) = head.get(keyword + 1).filter(|t| t.kind == Kind::Word) {
            names.push(Name::Tag(tag.text(self.text).to_owned()));
        }
        if head[keyword].text(self.text) == "enum" {
            names.extend(self.enumerators(body));
        }
        names
    }

    fn enumerators(&self, body: usize) -> Vec<Name> {
        let mut names = Vec::new();
        let mut depth = 0;
        let mut expect = true;
        for token in &self.pending[body..] {
            match token.kind {
                Kind::Punct(b'{' | b'(') => depth += 1,
                Kind::Punct(b'}' | b')') => depth -= 1,
                Kind::Punct(b',') if depth == 1 => expect = true,
                Kind::Word if expect && depth == 1 => {
                    names.push(Name::Plain(token.text(self.text).to_owned()));
                    expect = false;
                }
                _ => {}
            }
        }
        names
    }
}

fn has_initialiser(head: &[Token]) -> bool {
    head.iter().any(|t| t.is(b'='))
}

/// Index of the word before the first parameter list.
fn function_name(text: &str, head: &[Token]) -> Option<usize> {
    let mut depth = 0;
    for (i, token) in head.iter().enumerate() {
        match token.kind {
            Kind::Punct(b'=') if depth == 0 => return None,
            Kind::Punct(b'(') => {
                let before = i.checked_sub(1).map(|i| &head[i])?;
                let word = before.text(text);
                if head.get(i + 1).is_some_and(|t| t.is(b'*')) && depth == 0 {
                    return None; // A pointer to a function, not a function.
                }
                if depth == 0
                    && before.kind == Kind::Word
                    && !ANNOTATIONS.contains(&word)
                    && word != "typeof"
                {
                    return Some(i - 1);
                }
                depth += 1;
            }
            Kind::Punct(b')') => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The name a typedef or variable declares: in `(*name)`, or the last word before `;`, `=` or `[`.
fn declared_name(text: &str, tokens: &[Token]) -> Option<String> {
    let pointer =
        tokens.windows(3).find(|w| w[0].is(b'(') && w[1].is(b'*') && w[2].kind == Kind::Word);
    if let Some(pointer) = pointer {
        return Some(pointer[2].text(text).to_owned());
    }
    let mut depth = 0;
    let mut name = None;
    for token in tokens {
        match token.kind {
            Kind::Punct(b'{' | b'(') => depth += 1,
            Kind::Punct(b'}' | b')') => depth -= 1,
            Kind::Punct(b'=' | b'[' | b';') if depth == 0 => break,
            Kind::Word if depth == 0 && !token.text(text).starts_with("__") => {
                name = Some(token.text(text));
            }
            _ => {}
        }
    }
    name.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let file = SourceFile::new("x.h", text.to_owned());
        let name = |n: &Name| match n {
            Name::Tag(t) => format!("tag {t}"),
            Name::Plain(t) => t.clone(),
        };
        let names = |i: &Item| i.names.iter().map(name).collect::<Vec<_>>().join(" ");
        file.items
            .iter()
            .map(|i| format!("{:?}@{}: {}", i.kind, file.line(i.span.start), names(i)))
            .collect()
    }

    #[test]
    fn every_shape_of_item() {
        let text = "\
typedef int (*fill_t)(struct file *, void *);
struct ra { int a; struct inner { int b; } c; };
enum { ONE = (1 << 0), TWO, };
#define PAIR(a, b) \\
	((a) + (b))
#define FLAG 1
static inline __attribute__((pure)) unsigned long next(struct ra *ra)
{
	return ra->a;
}
extern long limit;
static const struct ops ops = { .go = next, };
void start(struct ra *ra, int n);
struct later;
typedef unsigned int flags_t;
static int table[] = { 1, 2 };
";
        assert_eq!(
            shown(text),
            [
                "Type@1: fill_t",
                "Type@2: tag ra",
                "Type@3: ONE TWO",
                "Macro { takes_arguments: true }@4: PAIR",
                "Macro { takes_arguments: false }@6: FLAG",
                "Function@7: next",
                "Variable@11: limit",
                "Variable@12: ops",
                "Prototype@13: start",
                "Type@15: flags_t",
                "Variable@16: table",
            ]
        );
    }

    #[test]
    fn branches_that_open_the_same_brace_do_not_swallow_the_file() {
        let text =
            "int f(void)\n{\n#ifdef A\n\tif (a) {\n#else\n\tif (b) {\n#endif\n\t}\n}\nint g;\n";
        assert_eq!(shown(text), ["Function@1: f", "Variable@10: g"]);
    }

    #[test]
    fn members_and_labels_are_not_mentions() {
        let file = SourceFile::new(
            "x.c",
            "int f(struct s *p) { p->m = q.n; goto out; call(p); }".to_owned(),
        );
        let names: Vec<_> =
            file.all_mentions().into_iter().map(|m| m.name.text().to_owned()).collect();
        assert_eq!(names, ["s", "call", "f", "goto", "int", "p", "q", "struct"]);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken_apart(text in "[a-z{}();=#\\n \"'/*]*") {
            let file = SourceFile::new("x.c", text);
            for item in &file.items {
                let _ = &file.text[item.span.clone()];
            }
        }
    }
}
