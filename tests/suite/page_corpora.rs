//! The page of real histories in a real browser.
//!
//! `CODEBOOST_CORPORA` names a folder of corpora, as for `link_corpora`; without it this test says
//! loudly that it was left out.

#![expect(clippy::print_stdout, reason = "figures for who runs them by hand")]

use serde_json::json;

use crate::link_corpora::{Corpus, ranges};
use crate::support::browser::Browser;
use crate::support::diffs;
use crate::support::page::{ready, select};

/// Where every changed line of the page stands, by its own data: one entry a segment, in the form
/// of the link's. A segment counts where its row shows it.
const SEGMENTS: &str = "
  const unpack = async (id) => {
    const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
    return JSON.parse(await new Response(stream).text());
  };
  const index = JSON.parse(document.getElementById('index').textContent);
  const { segment_rows: runs } = await unpack('details');
  const rowOf = [];
  for (let i = 0; i < runs.length; i += 2) for (let n = 0; n < runs[i + 1]; n++) rowOf.push(runs[i]);
  const out = [];
  for (let row = 0; row < index.rows.length; row++) {
    let at = 0;
    const block = await unpack(`row${row}`), texts = block.text.split('\\n');
    for (const { file, hunks } of block.files) for (const hunk of hunks) {
      const here = new Set();
      for (const [from, n] of hunk.here ?? [[0, hunk.kinds.length]]) for (let i = 0; i < n; i++) here.add(from + i);
      at += here.size;
      let i = 0, old = hunk.old, head = hunk.new;
      const pass = (kind) => { if (kind !== '+') old++; if (kind !== '-') head++; i++; };
      hunk.counts.forEach((lines, n) => {
        while (hunk.kinds[i] === ' ') pass(' ');
        const op = hunk.kinds[i], start = op === '+' ? head : old;
        let isHere = true;
        for (let k = 0; k < lines; k++) { isHere &&= here.has(i) && hunk.kinds[i] === op; pass(op); }
        if (rowOf[hunk.first + n] !== row) return;
        if (!isHere) throw new Error(`segment ${hunk.first + n} is not whole in its row`);
        out.push({ kind: 'text', file, op, lines, [op === '+' ? 'new_start' : 'old_start']: start });
      });
    }
    if (at !== texts.length && at > 0) throw new Error(`row ${row} has ${texts.length} lines, not ${at}`);
  }
  return out;";

#[test]
fn pages_of_corpora_open_quietly_and_show_the_lines_that_git_has() {
    for (folder, range) in ranges() {
        let corpus = Corpus::link(&folder, &range);
        let done = corpus.env.run([
            "render",
            "link.json",
            "--repo",
            "repo",
            "--plan",
            "plan.json",
            "--ledger",
            "ledger.json",
            "-o",
            "review.html",
            // Lexers are slow without optimization, and prove nothing here.
            "--highlight",
            "1",
        ]);
        assert_eq!(done.code, 0, "{done}");
        let Some(browser) = Browser::start() else { return };
        browser.open(&corpus.env.path("review.html"), "");
        ready(&browser);
        let rows = browser.js(
            "return [...document.querySelectorAll('[data-row]')].map((one) => one.dataset.row)",
            vec![],
        );
        let rows: Vec<String> = serde_json::from_value(rows).unwrap();
        for row in &rows {
            select(&browser, row);
            assert!(browser.count("#code .rows > .blk") > 0, "{row}");
        }
        let segments = browser.js_async(SEGMENTS, vec![]);
        assert!(segments.is_array(), "{segments}");
        browser.assert_quiet();
        let n_segments = segments.as_array().unwrap().len();
        let shown = json!({
            "base": corpus.link["base"],
            "files": corpus.link["files"],
            "segments": segments,
        });
        let ends = [corpus.base.as_str(), corpus.head.as_str()];
        let difference = diffs::difference(&corpus.env, "repo", ends, &shown);
        assert_eq!(difference, None, "{} {range}", folder.display());
        println!(
            "{} {range}: {} rows selected, {n_segments} text segments with git's lines",
            folder.display(),
            rows.len()
        );
    }
}
