//! Reading a path.

use super::{BadJsonPath, Selector};

/// More selectors than any sensible path has; each one costs a pass over the places reached.
const MOST_SELECTORS: usize = 64;

pub(super) fn selectors(path: &str) -> Result<Vec<Selector>, BadJsonPath> {
    let mut reader = Reader { characters: path.chars().collect(), at: 0 };
    if !reader.takes('$') {
        return Err(reader.wrong("a path begins with $"));
    }
    let mut selectors = Vec::new();
    while reader.peek().is_some() {
        if selectors.len() >= MOST_SELECTORS {
            return Err(reader.wrong("the path has more than 64 parts"));
        }
        if reader.takes('.') {
            if reader.takes('.') {
                selectors.push(Selector::Below);
                if matches!(reader.peek(), None | Some('[')) {
                    continue;
                }
            }
            selectors.push(reader.after_dot()?);
        } else if reader.takes('[') {
            selectors.push(reader.bracket()?);
        } else {
            return Err(reader.wrong("'.' or '[' should stand here"));
        }
    }
    Ok(selectors)
}

/// A name that may stand after a dot as it is.
pub(super) fn is_identifier(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(begins_identifier) && characters.all(continues_identifier)
}

fn begins_identifier(character: char) -> bool {
    character.is_alphabetic() || matches!(character, '_' | '$')
}

fn continues_identifier(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '$' | '\u{200c}' | '\u{200d}')
}

struct Reader {
    characters: Vec<char>,
    at: usize,
}

impl Reader {
    fn peek(&self) -> Option<char> {
        self.characters.get(self.at).copied()
    }

    fn takes(&mut self, character: char) -> bool {
        let taken = self.peek() == Some(character);
        self.at += usize::from(taken);
        taken
    }

    fn wrong(&self, what: &'static str) -> BadJsonPath {
        BadJsonPath { at: self.at, what }
    }

    fn white(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    fn after_dot(&mut self) -> Result<Selector, BadJsonPath> {
        match self.peek() {
            Some('*') => {
                self.at += 1;
                Ok(Selector::All)
            }
            Some('0'..='9') => Ok(Selector::Indices(vec![self.index()?])),
            Some(first) if begins_identifier(first) => {
                let rest = self.characters.get(self.at..).unwrap_or_default();
                let name: String =
                    rest.iter().copied().take_while(|next| continues_identifier(*next)).collect();
                self.at += name.chars().count();
                Ok(Selector::Names(vec![name]))
            }
            _ => Err(self.wrong("a name, an index or * should follow the dot")),
        }
    }

    fn bracket(&mut self) -> Result<Selector, BadJsonPath> {
        self.white();
        let selector = match self.peek() {
            Some('*') => {
                self.at += 1;
                Selector::All
            }
            Some('\'' | '"') => Selector::Names(self.list(Self::string)?),
            Some('0'..='9' | ':') => self.indices_or_slice()?,
            Some('-') => return Err(self.wrong("negative indices are not supported")),
            Some('?' | '(') => return Err(self.wrong("filters and scripts are not supported")),
            _ => return Err(self.wrong("a string, an index or * should follow the bracket")),
        };
        self.white();
        if self.takes(']') { Ok(selector) } else { Err(self.wrong("']' should stand here")) }
    }

    fn list<T>(&mut self, item: fn(&mut Self) -> Result<T, BadJsonPath>) -> Result<Vec<T>, BadJsonPath> {
        let mut items = vec![item(self)?];
        loop {
            self.white();
            if !self.takes(',') {
                return Ok(items);
            }
            self.white();
            items.push(item(self)?);
        }
    }

    fn indices_or_slice(&mut self) -> Result<Selector, BadJsonPath> {
        let before = self.at;
        let start = self.optional_index()?;
        if !self.takes(':') {
            self.at = before;
            return self.list(Self::index).map(Selector::Indices);
        }
        let end = self.optional_index()?;
        let step = if self.takes(':') { self.optional_index()? } else { None };
        if step == Some(0) {
            return Err(self.wrong("the step may not be 0"));
        }
        Ok(Selector::Slice { start: start.unwrap_or(0), end, step: step.unwrap_or(1) })
    }

    fn optional_index(&mut self) -> Result<Option<usize>, BadJsonPath> {
        self.white();
        let index = if matches!(self.peek(), Some('0'..='9')) { Some(self.index()?) } else { None };
        self.white();
        Ok(index)
    }

    fn index(&mut self) -> Result<usize, BadJsonPath> {
        let mut index: usize = 0;
        let start = self.at;
        while let Some(digit) = self.peek().and_then(|character| character.to_digit(10)) {
            index = index
                .checked_mul(10)
                .and_then(|index| index.checked_add(digit as usize))
                .ok_or(BadJsonPath { at: start, what: "the index is too large" })?;
            self.at += 1;
        }
        if self.at == start { Err(self.wrong("an index should stand here")) } else { Ok(index) }
    }

    fn string(&mut self) -> Result<String, BadJsonPath> {
        let quote = self.peek();
        if !matches!(quote, Some('\'' | '"')) {
            return Err(self.wrong("a string should stand here"));
        }
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.peek() {
                None | Some('\n' | '\r') => return Err(self.wrong("the string does not end")),
                found if found == quote => {
                    self.at += 1;
                    return Ok(text);
                }
                Some('\\') => {
                    let start = self.at;
                    self.at += 1;
                    text.extend(self.escape(start)?);
                }
                Some(plain) => {
                    self.at += 1;
                    text.push(plain);
                }
            }
        }
    }

    /// What stands after a backslash: none for a line that goes on.
    fn escape(&mut self, start: usize) -> Result<Option<char>, BadJsonPath> {
        let Some(character) = self.peek() else { return Err(self.wrong("the string does not end")) };
        self.at += 1;
        let escaped = match character {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            'x' => self.code(2, start)?,
            'u' => return self.unicode(start).map(Some),
            '0'..='7' => self.octal(character),
            '\r' => {
                self.takes('\n');
                return Ok(None);
            }
            '\n' | '\u{2028}' | '\u{2029}' => return Ok(None),
            other => other,
        };
        Ok(Some(escaped))
    }

    /// One to three octal digits, up to `\377`.
    fn octal(&mut self, first: char) -> char {
        let mut code = first.to_digit(8).unwrap_or_default();
        let most = if code <= 3 { 2 } else { 1 };
        for _ in 0..most {
            let Some(digit) = self.peek().and_then(|next| next.to_digit(8)) else { break };
            code = code * 8 + digit;
            self.at += 1;
        }
        char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
    }

    fn unicode(&mut self, start: usize) -> Result<char, BadJsonPath> {
        let wrong = BadJsonPath { at: start, what: "the escape sequence names no character" };
        if self.takes('{') {
            let mut code = 0_u32;
            while let Some(digit) = self.peek().and_then(|next| next.to_digit(16)) {
                code = code.checked_mul(16).map(|code| code | digit).ok_or_else(|| wrong.clone())?;
                self.at += 1;
            }
            return if self.takes('}') { char::from_u32(code).ok_or(wrong) } else { Err(wrong) };
        }
        let first = self.hexadecimal(4).ok_or_else(|| wrong.clone())?;
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first).ok_or(wrong);
        }
        let second = if self.takes('\\') && self.takes('u') { self.hexadecimal(4) } else { None };
        match second {
            Some(second @ 0xdc00..0xe000) => {
                char::from_u32(0x1_0000 + ((first & 0x3ff) << 10) + (second & 0x3ff)).ok_or(wrong)
            }
            _ => Err(wrong),
        }
    }

    fn code(&mut self, digits: usize, start: usize) -> Result<char, BadJsonPath> {
        let code = self.hexadecimal(digits).and_then(char::from_u32);
        code.ok_or(BadJsonPath { at: start, what: "the escape sequence names no character" })
    }

    fn hexadecimal(&mut self, digits: usize) -> Option<u32> {
        (0..digits).try_fold(0, |code, _| {
            let digit = self.peek()?.to_digit(16)?;
            self.at += 1;
            Some(code * 16 + digit)
        })
    }
}
