//! The form in which texts are compared: what a person types has to find what another one wrote, who may have had another
//! keyboard, another program or another habit.

use std::collections::BTreeSet;

use unicode_normalization::UnicodeNormalization as _;

use super::{MIN_TEXT, TITLE};

/// Stands before and after each short word of a text. No field has it.
const SHORT: char = '\u{2}';
/// How many characters a short word has at most. The index finds all parts of longer ones.
const SHORT_WORD: usize = MIN_TEXT - 1;
/// The fewest digits of a number that is written with other characters than those of [`is_usual`].
const MIN_UNUSUAL: usize = 6;
/// The fewest digits of a number without its country or its first zero.
const MIN_SUBSCRIBER: usize = 7;
/// The fewest digits of a number with its country, where nothing says that it has one.
const MIN_INTERNATIONAL: usize = 10;
/// The digits zero of scripts that have digits of their own.
const ZEROS: [char; 9] =
    ['\u{660}', '\u{6f0}', '\u{966}', '\u{9e6}', '\u{a66}', '\u{ae6}', '\u{be6}', '\u{e50}', '\u{1040}'];

/// Returns a text in the form in which it is compared.
///
/// Case, accents and strokes, width, and kinds of spaces, dashes, quotes and digits make no difference, nor do characters that are
/// not seen. A letter with an accent is the same whether it is one character or two. Scripts without spaces between words are compared
/// without any.
pub(super) fn folded(text: &str) -> String {
    let plain: String = text.nfkd().filter(|char| !is_mark(*char) && !is_unseen(*char)).map(plain).nfc().collect();
    // By way of upper case, "ß" is "ss", and both forms of a final sigma are one.
    let mut lower = String::with_capacity(plain.len());
    for char in plain.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase) {
        match base_letters(char) {
            Some(letters) => lower.push_str(letters),
            None => lower.push(char),
        }
    }
    let mut folded = String::with_capacity(lower.len());
    for word in lower.split_whitespace() {
        let is_joined = folded.chars().next_back().is_some_and(is_unspaced) && word.starts_with(is_unspaced);
        if !folded.is_empty() && !is_joined {
            folded.push(' ');
        }
        folded.push_str(word);
    }
    folded
}

/// Returns a text without the characters that are not seen, which come along when one is copied.
pub(super) fn seen(text: &str) -> String {
    text.chars().filter(|char| !is_unseen(*char)).collect::<String>().trim().to_owned()
}

/// Returns whether a character is an accent, or a vowel sign that may be left out.
fn is_mark(char: char) -> bool {
    matches!(char, '\u{300}'..='\u{36f}' | '\u{591}'..='\u{5bd}' | '\u{640}' | '\u{64b}'..='\u{65f}' | '\u{670}')
}

/// Returns whether a character is not seen and is no space.
fn is_unseen(char: char) -> bool {
    matches!(
        char,
        '\u{ad}' | '\u{61c}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}'
    ) || (char.is_control() && !char.is_whitespace())
}

/// Returns the letters that people type in place of a small Latin letter which has a stroke or is two, and no accent that could
/// be taken off.
fn base_letters(char: char) -> Option<&'static str> {
    Some(match char {
        'æ' => "ae",
        'œ' => "oe",
        'þ' => "th",
        'ð' | 'đ' | 'ɖ' | 'ɗ' => "d",
        'ø' => "o",
        'ł' | 'ƚ' => "l",
        'ħ' => "h",
        'ŧ' => "t",
        'ŋ' => "n",
        'ı' | 'ɨ' => "i",
        'ƀ' | 'ɓ' => "b",
        'ǥ' => "g",
        'ƙ' => "k",
        'ƴ' => "y",
        'ƶ' => "z",
        _ => return None,
    })
}

/// Returns the character that people type in place of another one.
fn plain(char: char) -> char {
    match char {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}' | '\u{2019}' | '\u{201b}' | '\u{2bc}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        // The dot between the parts of a foreign name in Japanese.
        '\u{30fb}' => ' ',
        _ => {
            let digit =
                ZEROS.iter().find_map(|zero| u32::from(char).checked_sub(u32::from(*zero)).filter(|it| *it < 10));
            digit.and_then(|digit| char::from_digit(digit, 10)).unwrap_or(char)
        }
    }
}

/// Returns whether a character is of a script that has no spaces between words, or not always: Chinese, Japanese, Korean, Thai,
/// Lao, Burmese and Khmer.
pub(super) fn is_unspaced(char: char) -> bool {
    matches!(
        char,
        '\u{e01}'..='\u{eff}' | '\u{1000}'..='\u{11ff}' | '\u{1780}'..='\u{17ff}' | '\u{2e80}'..='\u{2fdf}'
            | '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{318f}' | '\u{31a0}'..='\u{31ff}' | '\u{3400}'..='\u{9fff}'
            | '\u{a960}'..='\u{a97f}' | '\u{ac00}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}' | '\u{1b000}'..='\u{1b16f}'
            | '\u{20000}'..='\u{3ffff}'
    )
}

/// Returns the short words of folded texts, each between two marks. Of a script without spaces they are all parts of its texts
/// that are as short.
pub(super) fn short_words<'t>(texts: impl IntoIterator<Item = &'t str>) -> Option<String> {
    let mut words = BTreeSet::new();
    for text in texts {
        let is_short = |word: &&str| !word.is_empty() && word.chars().count() <= SHORT_WORD;
        words.extend(text.split(' ').filter(is_short).map(str::to_owned));
        let chars: Vec<char> = text.chars().collect();
        for part in chars.chunk_by(|one, next| kind_of(*one) == kind_of(*next)) {
            match part.first().map(|first| kind_of(*first)) {
                Some(Kind::Unspaced) => {
                    let parts = (1..=SHORT_WORD).flat_map(|length| part.windows(length));
                    words.extend(parts.map(|part| part.iter().collect::<String>()));
                }
                Some(Kind::Spaced) if part.len() <= SHORT_WORD => {
                    words.insert(part.iter().collect());
                }
                _ => {}
            }
        }
    }
    let marked: String = words.iter().flat_map(|word| [word.as_str(), "\u{2}"]).collect();
    (!marked.is_empty()).then(|| format!("{SHORT}{marked}"))
}

/// Whether a character is part of a word, and of which kind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Spaced,
    Unspaced,
    Other,
}

fn kind_of(char: char) -> Kind {
    match char {
        _ if is_unspaced(char) => Kind::Unspaced,
        _ if char.is_alphanumeric() => Kind::Spaced,
        _ => Kind::Other,
    }
}

/// Returns all digits of a folded phone number, whatever stands between them, if there are enough to look for.
pub(super) fn digits(phone: &str) -> Option<String> {
    // The zero that is left out behind the number of a country.
    let phone = phone.replace("(0)", "");
    let digits: String = phone.chars().filter(char::is_ascii_digit).collect();
    (digits.len() >= MIN_TEXT).then_some(digits)
}

/// Returns the digits of each number in a folded phone field that is long enough to be one, where it has more than one number, or
/// words beside it.
pub(super) fn single_numbers(phone: &str) -> Vec<String> {
    let is_end = |char: char| char.is_alphabetic() || "/,;|&".contains(char);
    let numbers = phone.split(is_end).filter_map(digits).filter(|digits| digits.len() >= MIN_SUBSCRIBER);
    let all = digits(phone);
    numbers.filter(|number| Some(number) != all.as_ref()).collect()
}

/// Returns what the texts of records with this title have, and no others.
pub(super) fn whole_title(title: &str) -> String {
    format!("{TITLE}{title}\n")
}

/// Returns what the texts of the records have that a folded text finds, the most exact first.
pub(super) fn parts(text: &str) -> Vec<String> {
    let mut parts = vec![whole_title(text)];
    if text.chars().count() < MIN_TEXT {
        parts.push(format!("{SHORT}{text}{SHORT}"));
    } else {
        parts.push(text.to_owned());
        parts.extend(numbers(text));
    }
    let mut seen = BTreeSet::new();
    parts.retain(|part| seen.insert(part.clone()));
    parts
}

/// Returns the numbers that a folded text may stand for, if it can be a phone number.
fn numbers(text: &str) -> Vec<String> {
    let Some(digits) = digits(text).filter(|digits| can_be_phone(text, digits)) else { return Vec::new() };
    let without_zeros = digits.trim_start_matches('0');
    let mut numbers = vec![digits.clone()];
    if without_zeros.len() >= MIN_SUBSCRIBER && without_zeros != digits {
        numbers.push(without_zeros.to_owned());
    }
    // Without the sign before it, it is long enough to begin with the number of a country.
    if text.starts_with('+')
        || digits.starts_with("00")
        || digits.len() >= MIN_INTERNATIONAL && !digits.starts_with('0')
    {
        // The same number as it is written within its country, whose number has one to three digits.
        let national =
            (1..=3).filter_map(|country| without_zeros.get(country..)).map(|rest| rest.trim_start_matches('0'));
        for rest in national.filter(|rest| rest.len() >= MIN_SUBSCRIBER) {
            numbers.extend([format!("\n0{rest}\n"), format!("\n{rest}\n")]);
        }
    }
    numbers
}

/// Returns whether a folded text with these digits can be a phone number.
fn can_be_phone(text: &str, digits: &str) -> bool {
    let is_usual = |char: char| char.is_ascii_digit() || " +-()./".contains(char);
    !text.chars().any(char::is_alphabetic) && (digits.len() >= MIN_UNUSUAL || text.chars().all(is_usual))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_mean_the_same_have_one_form() {
        for (written, typed) in [
            ("Zoe\u{308}", "ZOË"),
            ("Zoë", "zoe"),
            ("한글", "\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af}"),
            ("が", "か\u{3099}"),
            ("ＨＰ　１２", "hp 12"),
            ("O\u{2019}Neil", "o'neil"),
            ("Jean\u{2010}Luc", "jean-luc"),
            ("STRASSE", "straße"),
            ("ΟΔΟΣ ΑΒΓ", "οδός αβγ"),
            ("İstanbul", "istanbul"),
            ("Łukasz", "LUKASZ"),
            ("Søren Ærø", "soren aero"),
            ("SØREN", "søren"),
            ("Đặng Văn", "dang van"),
            ("Þórður", "thordur"),
            ("Ħamrun", "hamrun"),
            ("Œuvre", "oeuvre"),
            ("Işık", "isik"),
            ("ﬁne", "FINE"),
            ("a\u{a0}\u{2009} b\t", " a b"),
            ("\u{202a}Ada\u{202c}\u{feff}", "a\u{ad}da"),
            ("王 伟", "王伟"),
            ("ジョン・スミス", "ｼﾞｮﾝ ｽﾐｽ"),
            ("김 철수", "김철수"),
            ("٠٤١٢", "0412"),
        ] {
            assert_eq!(folded(written), folded(typed), "{written} {typed}");
        }
        for (one, other) in [("か", "が"), ("日本", "日木"), ("a b", "ab"), ("王 Wei", "王Wei")] {
            assert_ne!(folded(one), folded(other));
        }
    }

    #[test]
    fn short_words_are_whole_words_or_any_part_of_a_script_without_spaces() {
        let words = |text: &str| short_words([folded(text).as_str()]).unwrap_or_default().replace(SHORT, "|");
        assert_eq!(words("Jo Ng"), "|jo|ng|");
        assert_eq!(words("HP-Store, C# & 3M"), "|&|3m|c|c#|hp|");
        assert_eq!(words("北京水HP"), "|hp|京|京水|北|北京|水|");
        assert_eq!(words("Anna"), "");
    }

    #[test]
    fn each_of_several_numbers_is_one() {
        let numbers = |text: &str| single_numbers(&folded(text));
        assert_eq!(numbers("0412 345 678 / 0413 000 111"), ["0412345678", "0413000111"]);
        assert_eq!(numbers("+61 (0)412 345 678, +61 3 5550 0100"), ["61412345678", "61355500100"]);
        assert_eq!(numbers("m: 0412 345 678 h: 5550 0100"), ["0412345678", "55500100"]);
        assert_eq!(numbers("0412 345 678 ext 12"), ["0412345678"]);
        for text in ["0412 345 678", "0412/345678", "5550", ""] {
            assert_eq!(numbers(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn a_number_is_looked_for_as_it_may_be_written() {
        let numbers = |text: &str| numbers(&folded(text));
        assert_eq!(numbers("(3) 5550"), ["35550"]);
        assert_eq!(numbers("\u{202a}0412\u{a0}345_678"), ["0412345678", "412345678"]);
        let in_country = ["61412345678", "\n01412345678\n", "\n1412345678\n", "\n0412345678\n", "\n412345678\n"];
        assert_eq!(numbers("+61 (0)412·345·678")[..5], in_country);
        assert_eq!(numbers("61412345678")[..5], in_country, "without its sign");
        assert_eq!(numbers("0412345678"), ["0412345678", "412345678"]);
        assert_eq!(numbers("412345678"), ["412345678"]);
        for text in ["100*", "100 percent", "INV-0001", "12"] {
            assert_eq!(numbers(text), [""; 0], "{text}");
        }
    }
}
