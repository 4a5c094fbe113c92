import assert from 'node:assert/strict';
import { test } from 'node:test';
import { collect, deal, expand, metas, placeOf, posOf, spanOf } from '../../assets/js/hunks.js';

const hunk = {
  old: 10, new: 12, kinds: ' --++ ', first: 5, before: 0, after: 0, counts: [1, 1, 2], context: 'fn a() {',
  texts: ['one', 'two', 'three', 'four', 'five', 'six'], runs: ['', 'k', '', '', '', ''], words: [[1, '2w']], unended: [5],
};

test('lines get numbers and segments', () => {
  const lines = expand(hunk);
  assert.deepEqual([...lines.olds], [10, 11, 12, 0, 0, 13]);
  assert.deepEqual([...lines.news], [12, 0, 0, 13, 14, 15]);
  assert.deepEqual([...lines.segments], [-1, 5, 6, 7, 7, -1]);
  assert.deepEqual(placeOf(lines, 7), [3, 2]);
  assert.deepEqual(lines.ids, [5, 6, 7]);
  assert.equal(lines.runs[1], 'k');
});

/** A block of two files, as the page carries it: three hunks, the last cut at both ends. */
const packed = () => ({
  files: [{ file: 0, n: 2 }, { file: 1, n: 1 }],
  gaps: [9, 4, 0], shifts: [1, -2, 99], skips: [5, 0, 2], steps: '=-+2=|+4|-3+', cuts: [[2, 7, 4]], here: [[1, [[0, 1], [3, 1]]]],
  context_hunks: [0, 2], contexts: ['fn a() {', 'fn b() {'], unended: [9], word_lines: [1, 1], words: '2w\n3w',
  said: [{}, { tags: [{ tag: 'eol' }] }], says: [0, 1, 1, 1, 0, 2], copies: [[2, 1, 2]],
  text: 'a\nb\n\nd\ne\nf\ni\nj\nk\nl', runs: '\nk\n\n\n\n\n\n\n\ns',
});

test('each hunk of a block gets its lines', () => {
  const block = packed();
  deal(block);
  const hunks = block.files.flatMap((file) => file.hunks);
  assert.deepEqual(hunks.map((one) => one.kinds), [' -++ ', '++++', '---+']);
  assert.deepEqual(hunks.map((one) => [one.old, one.new]), [[11, 10], [16, 18], [100, 1]]);
  assert.deepEqual(hunks.map((one) => [one.first, one.counts]), [[5, [1, 2]], [7, [4]], [10, [3, 1]]]);
  assert.deepEqual(hunks.map((one) => one.texts), [['a', 'b', '', 'd', 'e'], ['f', 'i'], ['j', 'k', 'l']]);
  assert.deepEqual(hunks.map((one) => one.words), [[[1, '2w'], [2, '3w']], [], []]);
  assert.deepEqual(hunks.map((one) => one.context), ['fn a() {', 'fn a() {', 'fn b() {']);
  assert.deepEqual(hunks.map((one) => [one.before, one.after]), [[0, 0], [0, 0], [7, 4]]);
  deal(Object.assign(block, { runs: undefined }));
  assert.equal(block.files[1].hunks[0].runs, null);
});

test('a segment that is cut knows its lines in all', () => {
  const block = packed();
  deal(block);
  const lines = expand(block.files[1].hunks[0]);
  assert.deepEqual(spanOf(lines, 10), { begin: 0, n: 3, before: 7, total: 10 });
  assert.deepEqual(spanOf(lines, 11), { begin: 3, n: 1, before: 0, total: 5 });
  assert.equal(lines.pos, posOf(10, 7));
  assert.ok(posOf(10, 6) < lines.pos && lines.pos < posOf(11, 0));
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

test('what segments say is told of each, also of one that is cut', () => {
  const block = packed();
  deal(block);
  const all = metas(block, (id) => id !== 6);
  assert.deepEqual([...all.keys()], [5, 7, 10, 11]);
  assert.deepEqual(all.get(7), { id: 7, tags: [{ tag: 'eol' }] });
  assert.deepEqual(all.get(10), { id: 10, copy: [1, 2] });
});

test('only hunks of a stretch are taken', () => {
  const block = packed();
  deal(block);
  const kept = (from, to) => collect([block], () => true, from, to).flatMap((file) => file.hunks.map((one) => one.first));
  assert.deepEqual(kept(posOf(5, 0), posOf(10, 7)), [5, 7]);
  assert.deepEqual(kept(posOf(10, 7), Infinity), [10]);
  assert.deepEqual(kept(posOf(10, 8), Infinity), []);
});
