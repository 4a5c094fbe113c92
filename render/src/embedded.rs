//! Templates and assets, embedded when the package is built.
//!
//! A test reads both folders and fails when a file in them is missing here.

/// Templates by name.
pub(crate) const TEMPLATES: &[(&str, &str)] = &[
    ("shell.html", include_str!("../../templates/shell.html")),
    ("review.html", include_str!("../../templates/review.html")),
    ("plan.html", include_str!("../../templates/plan.html")),
    ("site.html", include_str!("../../templates/site.html")),
    ("partials/menu.html", include_str!("../../templates/partials/menu.html")),
    ("partials/plain.html", include_str!("../../templates/partials/plain.html")),
    ("partials/plan_row.html", include_str!("../../templates/partials/plan_row.html")),
    ("partials/item_head.html", include_str!("../../templates/partials/item_head.html")),
    ("partials/file_change.html", include_str!("../../templates/partials/file_change.html")),
    ("partials/segment.html", include_str!("../../templates/partials/segment.html")),
    ("partials/conversation.html", include_str!("../../templates/partials/conversation.html")),
    ("partials/dialogs.html", include_str!("../../templates/partials/dialogs.html")),
];

/// Styles, in the order in which they are joined.
pub(crate) const STYLES: &[(&str, &str)] = &[
    ("css/tokens.css", include_str!("../../assets/css/tokens.css")),
    ("css/base.css", include_str!("../../assets/css/base.css")),
    ("css/review.css", include_str!("../../assets/css/review.css")),
    ("css/code.css", include_str!("../../assets/css/code.css")),
    ("css/print.css", include_str!("../../assets/css/print.css")),
];

/// What runs first in each page with a script.
pub(crate) const BOOT: &str = include_str!("../../assets/js/boot.js");

/// Script modules of the review page; each uses only those before it.
pub(crate) const SCRIPTS: &[(&str, &str)] = &[
    ("js/words.js", include_str!("../../assets/js/words.js")),
    ("js/text.js", include_str!("../../assets/js/text.js")),
    ("js/dom.js", include_str!("../../assets/js/dom.js")),
    ("js/hunks.js", include_str!("../../assets/js/hunks.js")),
    ("js/data.js", include_str!("../../assets/js/data.js")),
    ("js/keys.js", include_str!("../../assets/js/keys.js")),
    ("js/decisions.js", include_str!("../../assets/js/decisions.js")),
    ("js/dialog.js", include_str!("../../assets/js/dialog.js")),
    ("js/layers.js", include_str!("../../assets/js/layers.js")),
    ("js/drafts.js", include_str!("../../assets/js/drafts.js")),
    ("js/list.js", include_str!("../../assets/js/list.js")),
    ("js/app.js", include_str!("../../assets/js/app.js")),
    ("js/view.js", include_str!("../../assets/js/view.js")),
    ("js/code.js", include_str!("../../assets/js/code.js")),
    ("js/plan.js", include_str!("../../assets/js/plan.js")),
    ("js/talk.js", include_str!("../../assets/js/talk.js")),
    ("js/strip.js", include_str!("../../assets/js/strip.js")),
    ("js/dialogs.js", include_str!("../../assets/js/dialogs.js")),
    ("js/search.js", include_str!("../../assets/js/search.js")),
    ("js/panes.js", include_str!("../../assets/js/panes.js")),
    ("js/print.js", include_str!("../../assets/js/print.js")),
    ("js/main.js", include_str!("../../assets/js/main.js")),
];

/// Styles of the page of a plan.
pub(crate) const PLAN_STYLES: &[(&str, &str)] = &[
    ("css/tokens.css", include_str!("../../assets/css/tokens.css")),
    ("css/base.css", include_str!("../../assets/css/base.css")),
    ("css/review.css", include_str!("../../assets/css/review.css")),
    ("css/plan.css", include_str!("../../assets/css/plan.css")),
];

/// Styles of the pages around the reviews, which have no script.
pub(crate) const SITE_STYLES: &[(&str, &str)] = &[
    ("css/tokens.css", include_str!("../../assets/css/tokens.css")),
    ("css/base.css", include_str!("../../assets/css/base.css")),
    ("css/site.css", include_str!("../../assets/css/site.css")),
];

/// Script modules of the page of a plan; each uses only those before it.
pub(crate) const PLAN_SCRIPTS: &[(&str, &str)] = &[
    ("js/words.js", include_str!("../../assets/js/words.js")),
    ("js/text.js", include_str!("../../assets/js/text.js")),
    ("js/dom.js", include_str!("../../assets/js/dom.js")),
    ("js/hunks.js", include_str!("../../assets/js/hunks.js")),
    ("js/data.js", include_str!("../../assets/js/data.js")),
    ("js/decisions.js", include_str!("../../assets/js/decisions.js")),
    ("js/drafts.js", include_str!("../../assets/js/drafts.js")),
    ("js/dialog.js", include_str!("../../assets/js/dialog.js")),
    ("js/plan-state.js", include_str!("../../assets/js/plan-state.js")),
    ("js/plan-threads.js", include_str!("../../assets/js/plan-threads.js")),
    ("js/plan-decide.js", include_str!("../../assets/js/plan-decide.js")),
    ("js/plan-main.js", include_str!("../../assets/js/plan-main.js")),
];

/// One font face.
pub(crate) struct Font {
    pub(crate) family: &'static str,
    /// CSS weights that it serves.
    pub(crate) weight: &'static str,
    #[cfg_attr(not(test), expect(dead_code, reason = "a test holds the folder against it"))]
    pub(crate) file: &'static str,
    pub(crate) bytes: &'static [u8],
}

/// The published latin files of IBM Plex, unmodified, as its licence asks of files of that name.
pub(crate) const FONTS: &[Font] = &[
    Font {
        family: "IBM Plex Sans",
        weight: "400",
        file: "fonts/ibm-plex-sans-latin-400-normal.woff2",
        bytes: include_bytes!("../../assets/fonts/ibm-plex-sans-latin-400-normal.woff2"),
    },
    Font {
        family: "IBM Plex Sans",
        weight: "600",
        file: "fonts/ibm-plex-sans-latin-600-normal.woff2",
        bytes: include_bytes!("../../assets/fonts/ibm-plex-sans-latin-600-normal.woff2"),
    },
    Font {
        family: "IBM Plex Mono",
        weight: "400",
        file: "fonts/ibm-plex-mono-latin-400-normal.woff2",
        bytes: include_bytes!("../../assets/fonts/ibm-plex-mono-latin-400-normal.woff2"),
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_font_of_the_folder_is_a_face() {
        let assets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../assets");
        let found: BTreeSet<_> = fs::read_dir(assets.join("fonts"))
            .expect("the folder of fonts")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
            .filter(|name| !name.ends_with(".txt"))
            .map(|name| format!("fonts/{name}"))
            .collect();
        assert_eq!(found, FONTS.iter().map(|font| font.file.to_owned()).collect());
        for font in FONTS {
            assert_eq!(fs::read(assets.join(font.file)).expect("a font"), font.bytes);
        }
    }
}
