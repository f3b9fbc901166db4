//! A C tokenizer: just enough of translation phases 2 and 3 to find where things begin and end.
//!
//! Kernel files are full of macros that are not C by themselves, so a grammar has to guess where a
//! tokenizer does not: `tree-sitter-c` 0.24 leaves 150 error nodes in the six files read here, 91 of
//! them in `include/linux/fs.h`. Tokens and brackets are all that cutting needs.

use std::ops::Range;

/// What a token is, as far as cutting cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Identifier or keyword.
    Word,
    /// One character of punctuation.
    Punct(u8),
    /// Number, string or character constant.
    Literal,
    /// A whole preprocessor line, continuation lines included, without its newline.
    Directive,
}

/// A token and the bytes it covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) span: Range<usize>,
}

impl Token {
    pub(crate) fn text<'t>(&self, text: &'t str) -> &'t str {
        &text[self.span.clone()]
    }

    pub(crate) fn is(&self, punct: u8) -> bool {
        self.kind == Kind::Punct(punct)
    }
}

/// The tokens of `text`. Never fails: an unterminated comment or string ends with the text.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    Lexer { text: text.as_bytes(), at: 0, line_start: true }.run(true)
}

/// The tokens inside a directive, after its `#`.
pub(crate) fn directive_tokens(text: &str, span: Range<usize>) -> Vec<Token> {
    let mut lexer = Lexer { text: &text.as_bytes()[..span.end], at: span.start, line_start: false };
    lexer.skip_blank();
    lexer.at += 1;
    lexer.run(false)
}

struct Lexer<'t> {
    text: &'t [u8],
    at: usize,
    line_start: bool,
}

impl Lexer<'_> {
    fn run(mut self, directives: bool) -> Vec<Token> {
        let mut found = Vec::new();
        loop {
            self.skip_blank();
            let start = self.at;
            let Some(&c) = self.text.get(start) else { return found };
            let kind = match c {
                b'#' if directives && self.line_start => self.directive(),
                b'"' | b'\'' => self.quoted(c),
                b'0'..=b'9' => {
                    self.while_matches(Kind::Literal, |c| c.is_ascii_alphanumeric() || c == b'.')
                }
                _ if is_word(c) => self.while_matches(Kind::Word, is_word),
                _ => {
                    self.at += 1;
                    Kind::Punct(c)
                }
            };
            self.line_start = false;
            // A character outside ASCII is punctuation of several bytes; keep the span on a boundary.
            while self.text.get(self.at).is_some_and(|c| c & 0xc0 == 0x80) {
                self.at += 1;
            }
            found.push(Token { kind, span: start..self.at });
        }
    }

    fn starts_with(&self, what: &[u8]) -> bool {
        self.text[self.at..].starts_with(what)
    }

    fn skip_blank(&mut self) {
        while let Some(&c) = self.text.get(self.at) {
            if c == b'\n' {
                self.line_start = true;
                self.at += 1;
            } else if c.is_ascii_whitespace() {
                self.at += 1;
            } else if self.starts_with(b"\\\n") {
                self.at += 2;
            } else if self.starts_with(b"//") {
                self.skip_line();
            } else if self.starts_with(b"/*") {
                self.skip_comment();
            } else {
                return;
            }
        }
    }

    fn skip_comment(&mut self) {
        let rest = &self.text[self.at + 2..];
        let len = rest.windows(2).position(|w| w == b"*/").map_or(rest.len(), |n| n + 2);
        self.at += 2 + len;
    }

    /// To the end of the logical line, not over its newline.
    fn skip_line(&mut self) {
        while let Some(&c) = self.text.get(self.at) {
            if c == b'\n' {
                return;
            }
            self.at += if self.starts_with(b"\\\n") { 2 } else { 1 };
        }
    }

    /// Like [`Self::skip_line`], but a comment that spans lines keeps the directive going.
    fn directive(&mut self) -> Kind {
        while let Some(&c) = self.text.get(self.at) {
            match c {
                b'\n' => break,
                b'"' | b'\'' => _ = self.quoted(c),
                b'/' if self.starts_with(b"/*") => self.skip_comment(),
                b'/' if self.starts_with(b"//") => self.skip_line(),
                _ if self.starts_with(b"\\\n") => self.at += 2,
                _ => self.at += 1,
            }
        }
        Kind::Directive
    }

    /// A string or character constant; an apostrophe in an `#error` line ends with the line.
    fn quoted(&mut self, quote: u8) -> Kind {
        self.at += 1;
        while let Some(&c) = self.text.get(self.at) {
            match c {
                b'\n' => break,
                b'\\' => self.at = (self.at + 2).min(self.text.len()),
                _ => self.at += 1,
            }
            if c == quote {
                break;
            }
        }
        Kind::Literal
    }

    fn while_matches(&mut self, kind: Kind, matches: impl Fn(u8) -> bool) -> Kind {
        while self.text.get(self.at).is_some_and(|c| matches(*c)) {
            self.at += 1;
        }
        kind
    }
}

fn is_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        tokens(text).iter().map(|t| format!("{:?} {}", t.kind, t.text(text))).collect()
    }

    #[test]
    fn comments_strings_and_continuations_hide_their_content() {
        let text = "a /* { */ \"}\\\"\" '\\'' // {\n#define X(a) \\\n  { a /* \n */ }\nb";
        assert_eq!(
            shown(text),
            [
                "Word a",
                "Literal \"}\\\"\"",
                "Literal '\\''",
                "Directive #define X(a) \\\n  { a /* \n */ }",
                "Word b"
            ]
        );
    }

    #[test]
    fn a_hash_inside_a_line_is_not_a_directive() {
        assert_eq!(shown("a # b"), ["Word a", "Punct(35) #", "Word b"]);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_covered_in_order(text in "\\PC*") {
            let mut end = 0;
            for token in tokens(&text) {
                assert!(token.span.start >= end && token.span.end > token.span.start);
                end = token.span.end;
                let _ = token.text(&text);
            }
        }
    }
}
