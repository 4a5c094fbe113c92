//! Writes a sample page: `sample rich|hostile|wide [LINES] > review.html`.
//!
//! The form in it is signed by nobody; the page does not check signatures.

#![expect(clippy::print_stdout, reason = "the page is the output")]

use codeboost_render::model::SignedForm;
use codeboost_render::{Options, prepare, sample};

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let number = |n: usize| args.get(n).and_then(|text| text.parse().ok());
    let review = match args.get(1).map(String::as_str) {
        Some("hostile") => sample::hostile(),
        Some("wide") => sample::wide(number(2).unwrap_or(10_000)),
        _ => sample::rich(),
    };
    let flag = |name: &str| args.iter().any(|arg| arg == name);
    let mut options = Options { fonts: !flag("--no-fonts"), ..Options::default() };
    if flag("--no-whole") {
        options.whole_files_max_bytes = 0;
    }
    let prepared = prepare(&review, &options, &());
    let form = (!flag("--no-form")).then(|| SignedForm {
        payload: sample::form(&review, &prepared.data_digest),
        signature: vec![7; 64],
    });
    print!("{}", prepared.finish(form));
}
