//! JSON as tools write it: keys without quotes, bare words for text, commas before a closing bracket. Every value keeps
//! its line and its digits, which a strict reader loses.

/// How deep brackets may lie in each other.
const DEEPEST: usize = 64;

/// A value and its line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) line: u64,
    pub(crate) content: Content,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Content {
    Object(Vec<(String, Node)>),
    Array(Vec<Node>),
    /// Text in quotes.
    Text(String),
    /// A number, a name or text without quotes, as it stands.
    Word(String),
}

impl Node {
    /// The value of a key; the first, where a tool writes it twice.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        let Content::Object(pairs) = &self.content else { return None };
        pairs.iter().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    pub(crate) fn pairs(&self) -> &[(String, Node)] {
        match &self.content {
            Content::Object(pairs) => pairs,
            _ => &[],
        }
    }

    pub(crate) fn items(&self) -> &[Node] {
        match &self.content {
            Content::Array(items) => items,
            _ => &[],
        }
    }

    /// Text or a word.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Text(text) | Content::Word(text) => Some(text),
            _ => None,
        }
    }
}

/// Reads a document whose first line has a number; nothing where it is none.
pub(crate) fn read(text: &str, first: u64) -> Option<Node> {
    let mut reader = DocumentReader { text, at: 0, line: first };
    let node = reader.value(0)?;
    reader.skip_blank();
    // A comma may stand after the last bracket, too.
    reader.accept(b',');
    reader.skip_blank();
    (reader.at == text.len()).then_some(node)
}

struct DocumentReader<'a> {
    text: &'a str,
    at: usize,
    line: u64,
}

impl DocumentReader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_blank(&mut self) {
        while let Some(byte) = self.peek().filter(u8::is_ascii_whitespace) {
            self.line += u64::from(byte == b'\n');
            self.at += 1;
        }
    }

    fn accept(&mut self, byte: u8) -> bool {
        self.skip_blank();
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn value(&mut self, depth: usize) -> Option<Node> {
        if depth > DEEPEST {
            return None;
        }
        self.skip_blank();
        let line = self.line;
        let content = match self.peek()? {
            b'{' => {
                self.at += 1;
                let mut pairs = Vec::new();
                loop {
                    while self.accept(b',') {}
                    if self.accept(b'}') {
                        break;
                    }
                    let key = match self.peek()? {
                        b'"' => self.quoted()?,
                        _ => self.bare(b":\n{}[],\"")?,
                    };
                    if !self.accept(b':') {
                        return None;
                    }
                    pairs.push((key, self.value(depth + 1)?));
                }
                Content::Object(pairs)
            }
            b'[' => {
                self.at += 1;
                let mut items = Vec::new();
                loop {
                    while self.accept(b',') {}
                    if self.accept(b']') {
                        break;
                    }
                    items.push(self.value(depth + 1)?);
                }
                Content::Array(items)
            }
            b'"' => Content::Text(self.quoted()?),
            _ => Content::Word(self.bare(b",\n{}[]\"")?),
        };
        Some(Node { line, content })
    }

    /// Text in quotes, on one line.
    fn quoted(&mut self) -> Option<String> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let letter = self.text[self.at..].chars().next()?;
            self.at += letter.len_utf8();
            match letter {
                '"' => return Some(text),
                '\n' => return None,
                '\\' => {
                    let escaped = self.text[self.at..].chars().next()?;
                    self.at += escaped.len_utf8();
                    match escaped {
                        'n' => text.push('\n'),
                        't' => text.push('\t'),
                        'r' => text.push('\r'),
                        'u' => {
                            let code = self.text.get(self.at..self.at + 4)?;
                            self.at += 4;
                            let code = u32::from_str_radix(code, 16).ok()?;
                            // Half of a pair stands for nothing alone.
                            text.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                        }
                        '\n' => return None,
                        other => text.push(other),
                    }
                }
                other => text.push(other),
            }
        }
    }

    /// What stands before one of `ends`; nothing where that is empty.
    fn bare(&mut self, ends: &[u8]) -> Option<String> {
        let rest = &self.text[self.at..];
        let end = rest.bytes().position(|byte| ends.contains(&byte)).unwrap_or(rest.len());
        self.at += end;
        let word = rest[..end].trim();
        (!word.is_empty()).then(|| word.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tools_write_is_read() {
        let strict = read("{\"a\": {\"b\": [1, 2.50, \"x\\u0041\\n\"]}}", 1).expect("it is JSON");
        let items = strict.get("a").and_then(|a| a.get("b")).expect("it is there").items();
        assert_eq!(items[1].text(), Some("2.50"));
        assert_eq!(items[2].text(), Some("xA\n"));
        let loose = "{\ntest: RDMA_Write_BW_Test,\nTX_depth : 128,\npercentile_99.9: 1.50,\nsl: 3,\n},\n";
        let loose = read(loose, 7).expect("it is what perftest wrote");
        assert_eq!(loose.get("TX_depth").map(|node| (node.line, node.text())), Some((9, Some("128"))));
        assert_eq!(loose.get("percentile_99.9").and_then(Node::text), Some("1.50"));
        assert_eq!(loose.get("test").and_then(Node::text), Some("RDMA_Write_BW_Test"));
    }

    #[test]
    fn what_is_cut_off_is_none() {
        for text in ["{", "{\"a\"", "{\"a\": }", "[1, 2", "{\"a\": \"b\n\"}", "{a b}", "{} x", "", "{\"\\u00"]
        {
            assert_eq!(read(text, 1), None, "{text}");
        }
        assert_eq!(read(&"[".repeat(100_000), 1), None);
    }
}
