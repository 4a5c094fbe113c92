import assert from 'node:assert/strict';
import { test } from 'node:test';
import { collect, deal, expand, metas, placeOf } from '../../assets/js/hunks.js';

const hunk = {
  hunk: 0, old: 10, new: 12, kinds: ' --++ ', first: 5, counts: [1, 1, 2], contexts: [[1, 'fn a() {']],
  texts: ['one', 'two', 'three', 'four', 'five', 'six'], runs: ['', '3k', '', '', '', ''], words: [[1, '2w']], unended: [5],
};

test('lines get numbers and segments', () => {
  const lines = expand(hunk);
  assert.deepEqual([...lines.olds], [10, 11, 12, 0, 0, 13]);
  assert.deepEqual([...lines.news], [12, 0, 0, 13, 14, 15]);
  assert.deepEqual([...lines.segments], [-1, 5, 6, 7, 7, -1]);
  assert.deepEqual(placeOf(lines, 7), [3, 2]);
  assert.deepEqual(lines.ids, [5, 6, 7]);
  assert.equal(lines.runs[1], '3k');
});

test('each hunk of a block gets its lines', () => {
  const bare = (more) => ({ hunk: 0, old: 1, new: 1, first: 0, counts: [1], contexts: [], ...more });
  const block = {
    files: [{ file: 0, hunks: [bare({ kinds: ' + ' }), bare({ kinds: '++++', here: [[0, 1], [3, 1]] })] }, { file: 1, hunks: [bare({ kinds: '-' })] }],
    segments: [], text: 'a\nb\n\nd\ne\nf', runs: '\n1k\n\n\n\n1s',
  };
  deal(block);
  assert.deepEqual(block.files.flatMap((file) => file.hunks.map((one) => one.texts)), [['a', 'b', ''], ['d', 'e'], ['f']]);
  assert.deepEqual(block.files[1].hunks[0].runs, ['1s']);
  deal(Object.assign(block, { runs: undefined }));
  assert.equal(block.files[1].hunks[0].runs, null);
});

test('parts of a hunk from two rows are put together', () => {
  const part = (here, texts) => ({ ...hunk, here, texts, runs: null, words: undefined, unended: undefined });
  const block = (one) => ({ files: [{ file: 2, hunks: [one] }], segments: [] });
  const blocks = [block(part([[0, 2]], ['one', 'two'])), block(part([[3, 3]], ['four', 'five', 'six']))];
  const [file] = collect(blocks, (id) => id === 5 || id === 7);
  assert.deepEqual([...file.hunks[0].texts], ['one', 'two', undefined, 'four', 'five', 'six']);
});

test('only wanted hunks and cards are kept', () => {
  const block = { files: [{ file: 1, card: 9, change: 'mode', hunks: [hunk] }], segments: [] };
  assert.equal(collect([block], () => false).length, 0);
  assert.deepEqual(collect([block], (id) => id === 9).map((file) => [file.card, file.hunks.length]), [[9, 0]]);
  assert.deepEqual(collect([block], (id) => id === 6).map((file) => [file.card, file.hunks.length]), [[-1, 1]]);
});

test('a context that does not change is carried along', () => {
  const next = { ...hunk, first: 20, contexts: [] };
  const block = { files: [{ file: 1, hunks: [hunk, next] }], segments: [] };
  const [file] = collect([block], (id) => id >= 20);
  assert.equal(file.hunks[0].contexts.get(1), 'fn a() {');
});

test('commits that are not given are those of the segment before', () => {
  const block = {
    files: [{ file: 1, hunks: [hunk] }],
    segments: [{ id: 5, commits: [3] }, { id: 7, tags: [{ tag: 'eol' }] }],
  };
  const all = metas(block, (id) => id !== 6);
  assert.deepEqual([...all.keys()], [5, 7]);
  assert.deepEqual(all.get(7), { id: 7, tags: [{ tag: 'eol' }], commits: [3] });
});
