import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readDrafts, writeDrafts } from '../../assets/js/drafts.js';
import { id } from './sample.mjs';

const store = (text) => {
  const all = new Map(text === undefined ? [] : [['codeboost drafts sha256:x', text]]);
  return { getItem: (key) => all.get(key) ?? null, setItem: (key, value) => all.set(key, value) };
};

test('drafts come back for the same data only', () => {
  const storage = store();
  const stored = { decisions: [{ id: id(), type: 'approve', item: 'P1' }], seen: [0, 2], reviewer: 'R', saved: '[]' };
  assert.equal(writeDrafts(storage, 'sha256:x', stored), true);
  assert.deepEqual(readDrafts(storage, 'sha256:x', 3), stored);
  assert.deepEqual(readDrafts(storage, 'sha256:y', 3).decisions, []);
});

test('what another page wrote there is taken for nothing', () => {
  for (const text of ['', '{', 'null', '[]', '{"decisions":{"length":1}}', '{"decisions":[{"type":"approve","item":"P1"}]}']) {
    assert.deepEqual(readDrafts(store(text), 'sha256:x', 3).decisions, [], text);
  }
  const twice = { id: id(), type: 'withdraw', item: 'P1' };
  const far = { id: id(), type: 'accept', segment: 3, key: `sha256:${'0'.repeat(64)}` };
  const text = JSON.stringify({ decisions: [twice, twice, far], seen: [5, -1, 'x', 1], reviewer: 4 });
  assert.deepEqual(readDrafts(store(text), 'sha256:x', 3), { decisions: [twice], seen: [1], reviewer: '', saved: '' });
});

test('without storage drafts are not kept, and that is known', () => {
  assert.equal(writeDrafts(null, 'sha256:x', { decisions: [], seen: [], reviewer: '', saved: '' }), false);
  const full = { setItem: () => { throw new Error('full'); } };
  assert.equal(writeDrafts(full, 'sha256:x', { decisions: [], seen: [], reviewer: '', saved: '' }), false);
});
