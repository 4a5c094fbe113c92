import assert from 'node:assert/strict';
import { test } from 'node:test';
import { collect, expand, metas, placeOf } from '../../assets/js/hunks.js';

const hunk = {
  hunk: 0, old: 10, new: 12, kinds: ' --++ ', first: 5, counts: [1, 1, 2], contexts: [[1, 'fn a() {']],
  text: 'one\ntwo\nthree\nfour\nfive\nsix', runs: '\n3k\n\n\n\n', words: [[1, '2w']], unended: [5],
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

test('parts of a hunk from two rows are put together', () => {
  const part = (here, text) => ({ ...hunk, here, text, runs: undefined, words: undefined, unended: undefined });
  const block = (one) => ({ files: [{ file: 2, old: null, new: null, hunks: [one] }], segments: [] });
  const blocks = [block(part([[0, 2]], 'one\ntwo')), block(part([[3, 3]], 'four\nfive\nsix'))];
  const [file] = collect(blocks, (id) => id === 5 || id === 7);
  assert.deepEqual([...file.hunks[0].texts], ['one', 'two', undefined, 'four', 'five', 'six']);
});

test('only wanted hunks and cards are kept', () => {
  const block = { files: [{ file: 1, old: null, new: null, card: 9, change: 'mode', hunks: [hunk] }], segments: [] };
  assert.equal(collect([block], () => false).length, 0);
  assert.deepEqual(collect([block], (id) => id === 9).map((file) => [file.card, file.hunks.length]), [[9, 0]]);
  assert.deepEqual(collect([block], (id) => id === 6).map((file) => [file.card, file.hunks.length]), [[-1, 1]]);
});

test('a context that does not change is carried along', () => {
  const next = { ...hunk, first: 20, contexts: [] };
  const block = { files: [{ file: 1, old: null, new: null, hunks: [hunk, next] }], segments: [] };
  const [file] = collect([block], (id) => id >= 20);
  assert.equal(file.hunks[0].contexts.get(1), 'fn a() {');
});

test('commits that are not given are those of the segment before', () => {
  const block = {
    files: [{ file: 1, old: null, new: null, hunks: [hunk] }],
    segments: [{ id: 5, commits: [3] }, { id: 7, tags: [{ tag: 'eol' }] }],
  };
  const all = metas(block, (id) => id !== 6);
  assert.deepEqual([...all.keys()], [5, 7]);
  assert.deepEqual(all.get(7), { id: 7, tags: [{ tag: 'eol' }], commits: [3] });
});
