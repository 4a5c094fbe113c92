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
  const index = await unpack('index'), runs = index.segment_rows;
  const rowOf = [];
  for (let i = 0; i < runs.length; i += 2) for (let n = 0; n < runs[i + 1]; n++) rowOf.push(runs[i]);
  const out = [];
  for (let row = 0; row < index.rows.length; row++) for (let part = 0; part < index.parts[row].length; part++) {
    const block = await unpack(`row${row}-${part}`), steps = block.steps.split('|');
    const cuts = new Map((block.cuts ?? []).map(([hunk, before, after]) => [hunk, [before, after]])), some = new Map(block.here ?? []);
    let at = 0, number = 0, next = 0;
    for (const { file, n } of block.files) for (let left = n, old = 1, head = 1; left > 0; left--, number++) {
      const all = [...steps[number].matchAll(/([=+-])(\\d*)/g)].map(([, op, n]) => [op, Number(n || 1)]);
      const length = all.reduce((sum, [, n]) => sum + n, 0), here = new Set();
      for (const [from, n] of some.get(number) ?? [[0, length]]) for (let i = 0; i < n; i++) here.add(from + i);
      at += here.size;
      head += block.gaps[number];
      old += block.gaps[number] + block.shifts[number];
      const [before, after] = cuts.get(number) ?? [0, 0], first = next + block.skips[number];
      let i = 0, segment = first;
      for (const [op, lines] of all) {
        const start = op === '+' ? head : old;
        let isHere = true;
        for (let k = 0; k < lines; k++, i++) isHere &&= here.has(i);
        if (op !== '+') old += lines;
        if (op !== '-') head += lines;
        if (op === '=') continue;
        const id = segment++;
        if (rowOf[id] !== row) continue;
        if (!isHere) throw new Error(`segment ${id} is not whole in its row`);
        const known = out[out.length - 1];
        if (id !== first || before === 0) out.push({ kind: 'text', file, op, lines, id, [op === '+' ? 'new_start' : 'old_start']: start });
        else if (known.id === id && known.lines === before) known.lines += lines;
        else throw new Error(`segment ${id} goes on after ${before} lines`);
      }
      next = segment - (after > 0 ? 1 : 0);
    }
    const n = block.text.split('\\n').length;
    if (at !== n && at > 0) throw new Error(`part ${part} of row ${row} has ${n} lines, not ${at}`);
  }
  return out.map(({ id, ...one }) => one);";

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
