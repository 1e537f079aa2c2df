//! The parser of filters: recursive descent over tokens.

use serde_json::Value;

use super::{Expression, Operator, Path, Step};

/// The greatest depth of nested parentheses and `not`s, so that no filter exhausts the stack.
const MAX_DEPTH: usize = 20;
/// The highest number of comparisons and constants, which bounds the time that a filter takes.
const MAX_CONSTANTS: usize = 100;

/// Why a text is no filter.
pub(super) struct Problem {
    /// The byte at which it is not.
    pub(super) at: usize,
    pub(super) reason: String,
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// A word: a name, `and`, `or`, `not`, `in`, `true`, `false` or `null`.
    Word(String),
    Constant(Value),
    Operator(Operator),
    /// One of `( ) [ ] , .`
    Mark(char),
    /// A character that begins none of these.
    Unknown(char),
    End,
}

pub(super) fn parse(text: &str) -> Result<Expression, Problem> {
    let mut parser = Parser { text, at: 0, next: (0, Token::End), depth: 0, constants: 0 };
    parser.advance()?;
    let expression = parser.any()?;
    match parser.next.1 {
        Token::End => Ok(expression),
        _ => parser.expected("and, or, or the end"),
    }
}

struct Parser<'t> {
    text: &'t str,
    /// The byte after the next token.
    at: usize,
    /// The next token, and the byte at which it begins.
    next: (usize, Token),
    depth: usize,
    constants: usize,
}

impl Parser<'_> {
    /// `all or all`
    fn any(&mut self) -> Result<Expression, Problem> {
        let mut any = vec![self.all()?];
        while self.takes_word("or")? {
            any.push(self.all()?);
        }
        Ok(single(any).unwrap_or_else(Expression::Or))
    }

    /// `one and one`
    fn all(&mut self) -> Result<Expression, Problem> {
        let mut all = vec![self.one()?];
        while self.takes_word("and")? {
            all.push(self.one()?);
        }
        Ok(single(all).unwrap_or_else(Expression::And))
    }

    /// `not one`, `(any)` or a comparison.
    fn one(&mut self) -> Result<Expression, Problem> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.fail(format!("it is nested deeper than {MAX_DEPTH} levels"));
        }
        let one = if self.takes_word("not")? {
            Expression::Not(Box::new(self.one()?))
        } else if self.takes(&Token::Mark('('))? {
            let any = self.any()?;
            self.require(&Token::Mark(')'), "and, or, or )")?;
            any
        } else {
            self.comparison()?
        };
        self.depth -= 1;
        Ok(one)
    }

    fn comparison(&mut self) -> Result<Expression, Problem> {
        let path = self.path()?;
        if self.takes_word("in")? {
            self.require(&Token::Mark('['), "[")?;
            let mut constants = vec![self.constant()?];
            while self.takes(&Token::Mark(','))? {
                constants.push(self.constant()?);
            }
            self.require(&Token::Mark(']'), ", or ]")?;
            return Ok(Expression::In { path, constants });
        }
        let Token::Operator(operator) = self.next.1 else {
            return self.expected("==, !=, <, <=, >, >= or in");
        };
        self.advance()?;
        Ok(Expression::Compare { path, operator, constant: self.constant()? })
    }

    /// `event`, or `data` with the steps to a member.
    fn path(&mut self) -> Result<Path, Problem> {
        if self.takes_word("event")? {
            return Ok(Path::Event);
        }
        if !self.takes_word("data")? {
            return self.expected("event, data, not or (");
        }
        let mut steps = Vec::new();
        loop {
            if self.takes(&Token::Mark('.'))? {
                let Token::Word(name) = &self.next.1 else { return self.expected("the name of a member") };
                steps.push(Step::Member(name.clone()));
                self.advance()?;
            } else if self.takes(&Token::Mark('['))? {
                let index = match &self.next.1 {
                    Token::Constant(Value::String(name)) => Some(Step::Member(name.clone())),
                    Token::Constant(Value::Number(at)) => {
                        at.as_u64().and_then(|at| usize::try_from(at).ok()).map(Step::Item)
                    }
                    _ => None,
                };
                let Some(index) = index else { return self.expected("the number of an item, or a name in quotes") };
                steps.push(index);
                self.advance()?;
                self.require(&Token::Mark(']'), "]")?;
            } else {
                return Ok(Path::Data(steps));
            }
        }
    }

    fn constant(&mut self) -> Result<Value, Problem> {
        self.constants += 1;
        if self.constants > MAX_CONSTANTS {
            return self.fail(format!("it has more than {MAX_CONSTANTS} constants"));
        }
        let constant = match &self.next.1 {
            Token::Constant(constant) => constant.clone(),
            Token::Word(word) if word == "true" => Value::Bool(true),
            Token::Word(word) if word == "false" => Value::Bool(false),
            Token::Word(word) if word == "null" => Value::Null,
            _ => return self.expected("a text in double quotes, a number, true, false or null"),
        };
        self.advance()?;
        Ok(constant)
    }

    fn takes_word(&mut self, word: &str) -> Result<bool, Problem> {
        let is_next = matches!(&self.next.1, Token::Word(next) if next == word);
        if is_next {
            self.advance()?;
        }
        Ok(is_next)
    }

    fn takes(&mut self, token: &Token) -> Result<bool, Problem> {
        let is_next = self.next.1 == *token;
        if is_next {
            self.advance()?;
        }
        Ok(is_next)
    }

    fn require(&mut self, token: &Token, wanted: &str) -> Result<(), Problem> {
        if self.takes(token)? { Ok(()) } else { self.expected(wanted) }
    }

    fn expected<T>(&self, wanted: &str) -> Result<T, Problem> {
        let found = match self.next.1 {
            Token::End => "the end".to_owned(),
            _ => self.text[self.next.0..self.at].to_owned(),
        };
        self.fail(format!("expected {wanted}, and not {found}"))
    }

    fn fail<T>(&self, reason: impl Into<String>) -> Result<T, Problem> {
        Err(Problem { at: self.next.0, reason: reason.into() })
    }

    /// Reads the token after the next one.
    fn advance(&mut self) -> Result<(), Problem> {
        let rest = self.text[self.at..].trim_start();
        let at = self.text.len() - rest.len();
        self.next.0 = at;
        let (token, length) = read(rest).map_err(|reason| Problem { at, reason: reason.to_owned() })?;
        (self.next.1, self.at) = (token, at + length);
        Ok(())
    }
}

/// Returns the only item of a list, or the list.
fn single(mut list: Vec<Expression>) -> Result<Expression, Vec<Expression>> {
    match list.pop() {
        Some(last) if list.is_empty() => Ok(last),
        last => {
            list.extend(last);
            Err(list)
        }
    }
}

/// Reads the token at the beginning of a text, and returns its length in bytes.
fn read(text: &str) -> Result<(Token, usize), &'static str> {
    const OPERATORS: [(&str, Operator); 6] = [
        ("==", Operator::Equal),
        ("!=", Operator::NotEqual),
        ("<=", Operator::LessOrEqual),
        (">=", Operator::GreaterOrEqual),
        ("<", Operator::Less),
        (">", Operator::Greater),
    ];
    if let Some((sign, operator)) = OPERATORS.iter().find(|(sign, _)| text.starts_with(sign)) {
        return Ok((Token::Operator(*operator), sign.len()));
    }
    let length_of = |is_part: fn(char) -> bool| text.find(|c: char| !is_part(c)).unwrap_or(text.len());
    Ok(match text.chars().next() {
        None => (Token::End, 0),
        Some(mark @ ('(' | ')' | '[' | ']' | ',' | '.')) => (Token::Mark(mark), 1),
        Some('"') => {
            let length = end_of_text(text).ok_or("the text in double quotes does not end")?;
            let constant = serde_json::from_str(&text[..length]).map_err(
                |_| "the text in double quotes is not one as in JSON: write a backslash as \\\\ and a quote as \\\"",
            )?;
            (Token::Constant(constant), length)
        }
        Some(c) if c.is_ascii_digit() || c == '-' => {
            let length = length_of(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+'));
            let number: serde_json::Number =
                serde_json::from_str(&text[..length]).map_err(|_| "the number is not one as in JSON")?;
            (Token::Constant(Value::Number(number)), length)
        }
        Some(c) if c.is_alphabetic() || c == '_' => {
            let length = length_of(|c| c.is_alphanumeric() || c == '_');
            (Token::Word(text[..length].to_owned()), length)
        }
        Some(other) => (Token::Unknown(other), other.len_utf8()),
    })
}

/// Returns the length of a text in double quotes at the beginning of another, with the quotes.
fn end_of_text(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    let end = text.char_indices().skip(1).find(|(_, c)| {
        let ends = *c == '"' && !is_escaped;
        is_escaped = *c == '\\' && !is_escaped;
        ends
    });
    end.map(|(at, _)| at + 1)
}
