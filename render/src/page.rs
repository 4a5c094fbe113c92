//! Puts a page together: templates, one style, one script, data, and the policy that allows
//! nothing else.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use codeboost_schema::ids::Digest;
use codeboost_schema::link::Row;
use minijinja::{Environment, Value, context};

use crate::embedded::{BOOT, FONTS, PLAN_SCRIPTS, PLAN_STYLES, SCRIPTS, STYLES, TEMPLATES};
use crate::highlight::Highlighted;
use crate::model::{Approval, Review, SignedForm};
use crate::rows::{self, Source};
use crate::{hunks, index, script, text, wire};

/// What may differ between pages of one review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Whether the fonts are embedded (82 KB).
    pub fonts: bool,
    /// How much is highlighted.
    pub highlight: Budget,
    /// Bytes of unchanged lines that the page may carry, so that whole files can be read in it.
    pub whole_files_max_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { fonts: true, highlight: Budget::default(), whole_files_max_bytes: 2 << 20 }
    }
}

/// A limit on work that depends only on the input, so that the output does too.
///
/// It counts bytes and not time: two people who make the page of one review get the same page,
/// with the same digest, on any machine. A thread reads about 1 MB a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Bytes of source that are read for highlighting, both sides together.
    pub max_bytes: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { max_bytes: 24 << 20 }
    }
}

/// A page whose data is fixed, and which may still get its form.
///
/// The form names the digest of the page's data, so the data comes first.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// Digest of the page's data, for the form.
    pub data_digest: Digest,
    pub(crate) parts: Vec<Part>,
    pub(crate) plain: Value,
    pub(crate) title: String,
    pub(crate) fonts: bool,
    pub(crate) skin: Skin,
}

/// Which template, styles and script a page is made of.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Skin {
    Review,
    Plan,
}

const DATA: &str = "<script class=\"data\" id=\"";
const END: &str = "</script>";

/// One data element of the page.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) id: String,
    /// Media type of the element.
    pub(crate) kind: &'static str,
    pub(crate) text: String,
}

/// Draws everything but the form.
///
/// The same review and options give the same page, byte for byte. `known`: what highlighting came
/// to before; `&()` keeps nothing.
#[must_use]
pub fn prepare(review: &Review, options: &Options, known: &dyn Highlighted) -> Prepared {
    let link = &review.link;
    let by_file = rows::by_file(link);
    let (hunks, n_plain) = hunks::build_all(
        &link.files,
        &by_file,
        &review.contents,
        options.highlight.max_bytes,
        known,
    );
    let source = Source::new(review, by_file, hunks);
    let mut notices = Vec::new();
    if n_plain > 0 {
        notices.push(format!(
            "{n_plain} of {} files are shown without highlighting: the budget of {} MiB was used up.",
            link.files.len(),
            options.highlight.max_bytes >> 20
        ));
    }
    let whole = rows::whole(&source, options.whole_files_max_bytes);
    if let Some(notice) = &whole.notice {
        notices.push(notice.clone());
    }
    let (places, blocks): (Vec<Vec<wire::Place>>, Vec<Vec<String>>) =
        source.pack_parts().into_iter().map(|row| row.into_iter().unzip()).unzip();
    let index = index::index(review, &source, notices, &whole.has, places);
    let mut parts =
        vec![Part { id: "index".to_owned(), kind: "text/plain", text: rows::pack(&index) }];
    for (row, blocks) in blocks.into_iter().enumerate() {
        parts.extend(blocks.into_iter().enumerate().map(|(n, text)| Part {
            id: format!("row{row}-{n}"),
            kind: "text/plain",
            text,
        }));
    }
    for (n, item) in review.plan.items.iter().enumerate() {
        let recorded = review.items.iter().find(|one| one.item == item.id);
        if let Some(Approval::Stale { since, .. }) = recorded.map(|one| &one.approval)
            && !since.is_empty()
        {
            parts.push(Part {
                id: format!("since{n}"),
                kind: "text/plain",
                text: rows::pack(&rows::since(since)),
            });
        }
    }
    parts.extend(whole.parts.into_iter().map(|(n, text)| Part {
        id: format!("whole{n}"),
        kind: "text/plain",
        text,
    }));
    parts.extend(source.images.list.iter().enumerate().map(|(n, image)| Part {
        id: format!("image{n}"),
        kind: "text/plain",
        text: format!("{} {} {} {}", image.mime, image.width, image.height, image.data),
    }));
    let title = format!(
        "#{} {} · codeboost review",
        review.issue.number,
        text::shown(if review.issue.title.is_empty() {
            &review.plan.summary
        } else {
            &review.issue.title
        })
    );
    Prepared {
        data_digest: digest(parts.iter().map(|part| (part.id.as_str(), part.text.as_str()))),
        parts,
        plain: plain(review, &index),
        title,
        fonts: options.fonts,
        skin: Skin::Review,
    }
}

/// Digest of data elements: of each id and the digest of its text, both ended by LF, in order.
pub(crate) fn digest<'a>(parts: impl Iterator<Item = (&'a str, &'a str)>) -> Digest {
    let mut list = String::new();
    for (id, text) in parts {
        list.push_str(&format!("{id}\n{}\n", Digest::of(text.as_bytes())));
    }
    Digest::of(list.as_bytes())
}

/// What the page says where no script runs.
fn plain(review: &Review, index: &wire::Index<'_>) -> Value {
    let rows: Vec<Value> = review
        .link
        .rows
        .iter()
        .map(|summary| {
            let item = match &summary.row {
                Row::Item(id) => index.items.iter().find(|item| item.plan.id == *id),
                Row::Ambiguous | Row::Unplanned => None,
            };
            context! {
                name => match &summary.row {
                    Row::Item(id) => id.as_str(),
                    Row::Ambiguous => "Ambiguous",
                    Row::Unplanned => "Unplanned",
                },
                title => item.map_or("", |item| item.plan.title.as_str()),
                state => item.map_or("", |item| item.approval),
                changes => summary.changes,
                added => summary.added,
                removed => summary.removed,
            }
        })
        .collect();
    context! {
        repository => review.repository.clone(),
        issue => context! {
            number => review.issue.number,
            title => review.issue.title.clone(),
            pull_request => review.issue.pull_request.clone(),
        },
        revision => review.plan.revision,
        summary => review.plan.summary.clone(),
        base => review.link.base.as_str(),
        head => review.link.head.as_str(),
        rows => rows,
        blockers => review.blockers.iter().map(|one| one.words.clone()).collect::<Vec<_>>(),
        read_only => review.read_only.clone(),
        notices => index.notices.clone(),
        rendered_at => review.rendered_at.clone(),
        generator => review.generator.clone(),
    }
}

impl Prepared {
    /// The whole page.
    ///
    /// # Panics
    /// Never: the templates are part of the program, and a test draws all of them.
    #[must_use]
    pub fn finish(self, form: Option<SignedForm>) -> String {
        let (template, styles, scripts) = match self.skin {
            Skin::Review => ("review.html", STYLES, SCRIPTS),
            Skin::Plan => ("plan.html", PLAN_STYLES, PLAN_SCRIPTS),
        };
        let style = style(self.fonts, styles);
        let code = script::join(scripts);
        let boot = script::shorten(BOOT);
        let policy = format!(
            "default-src 'none'; script-src '{}' '{}'; style-src '{}'; img-src data:; font-src data:; \
             base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; \
             trusted-types page",
            script::hash(&boot),
            script::hash(&code),
            script::hash(&style)
        );
        let mut data = String::new();
        for Part { id, kind, text } in &self.parts {
            for piece in [DATA, id, "\" type=\"", kind, "\">", text, END, "\n"] {
                data.push_str(piece);
            }
        }
        let form = form.map(|form| {
            script::json(&serde_json::json!({
                "payload_b64": STANDARD.encode(&form.payload),
                "signature": STANDARD.encode(&form.signature),
            }))
        });
        environment()
            .get_template(template)
            .and_then(|template| {
                template.render(context! {
                    title => self.title,
                    policy => policy,
                    style => Value::from_safe_string(style),
                    code => Value::from_safe_string(script::pack(code.as_bytes())),
                    boot => Value::from_safe_string(boot),
                    data => Value::from_safe_string(data),
                    form => form.map(Value::from_safe_string),
                    plain => self.plain,
                    fonts => self.fonts,
                })
            })
            .expect("embedded templates render")
    }
}

pub(crate) fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.add_filter("shown", |text: &str| text::shown(text));
    for (name, text) in TEMPLATES {
        environment.add_template(name, text).expect("embedded templates parse");
    }
    environment
}

pub(crate) fn style(fonts: bool, styles: &[(&str, &str)]) -> String {
    let mut out = String::new();
    if fonts {
        for font in FONTS {
            out.push_str(&format!(
                "@font-face{{font-family:\"{}\";font-style:normal;font-weight:{};font-display:block;\
                 src:url(data:font/woff2;base64,{}) format(\"woff2\")}}\n",
                font.family,
                font.weight,
                STANDARD.encode(font.bytes)
            ));
        }
    }
    for (_, text) in styles {
        out.push_str(&script::shorten_style(text));
    }
    out
}

/// What a finished page holds, as far as it can be checked without opening it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageParts {
    /// Digest of the data that is in the page now.
    pub data_digest: Digest,
    /// The form, as it stands in the page; its signature is not checked.
    pub form: Option<SignedForm>,
}

/// Why a file is not a page that can be checked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// There is no data in it.
    #[error("no codeboost page: it holds no data")]
    NoData,
    /// The form can't be read.
    #[error("the form in the page can't be read")]
    Form,
}

/// Reads the data and the form out of a finished page.
///
/// # Errors
/// [`PageError`] when `html` is not a page that [`Prepared::finish`] could have written.
pub fn read_page(html: &str) -> Result<PageParts, PageError> {
    const FORM: &str = "<script id=\"form\" type=\"application/json\">";
    let mut parts = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find(DATA) {
        let element = &rest[at + DATA.len()..];
        let (id, after) = element.split_once('"').ok_or(PageError::NoData)?;
        let (_, content) = after.split_once('>').ok_or(PageError::NoData)?;
        let (text, after) = content.split_once(END).ok_or(PageError::NoData)?;
        parts.push((id, text));
        rest = after;
    }
    if parts.first().is_none_or(|(id, _)| *id != "index") {
        return Err(PageError::NoData);
    }
    let form = match html.split_once(FORM) {
        None => None,
        Some((_, after)) => {
            #[derive(serde::Deserialize)]
            #[serde(deny_unknown_fields)]
            struct Wire {
                payload_b64: String,
                signature: String,
            }
            let text = after.split_once(END).ok_or(PageError::Form)?.0;
            let wire: Wire = serde_json::from_str(text).map_err(|_| PageError::Form)?;
            let decode = |text: &str| STANDARD.decode(text).map_err(|_| PageError::Form);
            Some(SignedForm {
                payload: decode(&wire.payload_b64)?,
                signature: decode(&wire.signature)?,
            })
        }
    };
    Ok(PageParts { data_digest: digest(parts.into_iter()), form })
}
