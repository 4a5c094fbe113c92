import assert from 'node:assert/strict';
import { test } from 'node:test';
import { subject } from '../../assets/js/decisions.js';
import { blockersOf, derive, hindrances, makeModel, withDraft } from '../../assets/js/layers.js';
import { KEY, id, sampleIndex } from './sample.mjs';

const model = (changes) => makeModel(sampleIndex(changes));
const d = (type, more = {}) => ({ id: id(), type, ...more });
const assign = (segment, item) => d('assign', { segment, key: KEY, item });
const states = (derived) => [...derived.items.values()].map((one) => `${one.item.id} ${one.state}${one.drafted ? ' drafted' : ''}`);
const add = (m, drafts, ...more) => more.reduce((all, one) => withDraft(m, all, one, subject).drafts, drafts);

test('segments know their row and file', () => {
  const m = model();
  assert.deepEqual([0, 1, 2, 3, 4, 5].map(m.rowNameOf), ['P1', 'P1', 'P2', 'ambiguous', 'unplanned', 'unplanned']);
  assert.deepEqual([0, 3, 4, 5].map(m.fileOf), [0, 0, 1, 1]);
});

test('a drafted assignment makes its item and what depends on it stale at once', () => {
  const m = model();
  assert.deepEqual(states(derive(m, [])), ['P1 approved', 'P2 approved', 'P3 unreviewed']);
  const derived = derive(m, [assign(4, 'P1')]);
  assert.deepEqual(states(derived), ['P1 stale drafted', 'P2 stale drafted', 'P3 unreviewed']);
  assert.deepEqual(derived.items.get('P1').segments, [0, 1, 4]);
  assert.deepEqual(derived.open.unplanned, [5]);
  assert.equal(derived.nApproved, 0);
});

test('it can be approved again in the same file', () => {
  const m = model();
  const drafts = add(m, [], assign(4, 'P1'), d('approve', { item: 'P1' }));
  assert.deepEqual(states(derive(m, drafts)), ['P1 approved drafted', 'P2 stale drafted', 'P3 unreviewed']);
});

test('an approval drafted before an assignment is taken back by it', () => {
  const m = model();
  const approve = d('approve', { item: 'P3' });
  const { drafts, dropped } = withDraft(m, [approve], assign(5, 'P3'), subject);
  assert.deepEqual(dropped, [approve]);
  assert.deepEqual(drafts.map((one) => one.type), ['assign']);
});

test('an approval of what depends on it is taken back too', () => {
  const m = model({ items: sampleIndex().items.map((item) => ({ ...item, approval: 'unreviewed' })) });
  const approve = d('approve', { item: 'P2' });
  assert.deepEqual(withDraft(m, [approve], assign(5, 'P1'), subject).dropped, [approve]);
});

test('a later decision about the same thing replaces the earlier', () => {
  const m = model();
  const drafts = add(m, [], assign(4, 'P1'), assign(4, 'P2'), d('accept', { segment: 4, key: KEY }));
  assert.deepEqual(drafts.map((one) => one.type), ['accept']);
  assert.deepEqual(derive(m, drafts).accepted, [4]);
});

test('an assignment is judged against the files of its new item', () => {
  const items = sampleIndex().items.map((item) => ({ ...item, files: item.id === 'P1' ? [{ path: 'b', kind: 'add', renamed_from: null, change: '' }] : [] }));
  const m = model({ items });
  const left = (drafts) => derive(m, drafts).tagsLeft(5);
  assert.deepEqual([left([]), left([assign(5, 'P1')]), left([assign(5, 'P3')])], [[], [], ['out-of-scope']]);
  const drafts = add(m, [], assign(5, 'P3'), d('acknowledge', { segment: 5, key: KEY, tag: 'out-of-scope' }));
  assert.deepEqual([left(drafts), derive(m, drafts).items.get('P3').out], [[], [5]]);
  // Decided otherwise, there is nothing left that was acknowledged.
  assert.deepEqual(add(m, drafts, assign(5, 'P1')).map((one) => one.type), ['assign']);
});

test('an assignment of a renamed file is inside only where both paths are declared', () => {
  const file = (renamed_from) => ({ path: 'b', kind: 'rename', renamed_from, change: '' });
  const items = sampleIndex().items.map((item) => ({ ...item, files: [file(item.id === 'P1' ? 'old' : null)] }));
  const m = model({ items, files: [{ path: 'a', status: 'modified', end: 4 }, { path: 'b', old_path: 'old', status: 'renamed', end: 6 }] });
  assert.deepEqual([m.declares(5, 'P1'), m.declares(5, 'P3')], [true, false]);
});

test('recorded choices count, and can be undone in the drafts', () => {
  const m = model({ choices: [{ segment: 3, key: KEY, item: 'P1', by: 'R' }] });
  assert.deepEqual(derive(m, []).open.ambiguous, []);
  const derived = derive(m, [d('unresolve', { segment: 3, key: KEY })]);
  assert.deepEqual(derived.open.ambiguous, [3]);
  assert.deepEqual(states(derived), ['P1 stale drafted', 'P2 stale drafted', 'P3 unreviewed']);
});

test('what keeps an item from approval is listed', () => {
  const m = model();
  const seen = new Set([0]);
  const words = (drafts, item) => hindrances(derive(m, drafts), item, (segment) => seen.has(segment)).map((one) => one.words);
  assert.deepEqual(words([], 'P1'), ['1 change not seen yet', '1 mark to acknowledge', '1 ambiguous change to assign or accept']);
  assert.deepEqual(words([], 'P3'), ['1 ambiguous change to assign or accept']);
  seen.add(1);
  const drafts = [d('acknowledge', { segment: 1, key: KEY, tag: 'out-of-scope' }), d('accept', { segment: 3, key: KEY })];
  assert.deepEqual(words(drafts, 'P1'), []);
  assert.deepEqual(words([assign(4, 'P1'), ...drafts], 'P1'), ['1 change not seen yet', '3 marks to acknowledge']);
});

test('blockers count drafts', () => {
  const m = model({
    blockers: [
      { code: 'approval', words: 'recorded', target: null }, { code: 'tests', words: 'Open failed check', target: null },
      { code: 'requests', words: 'Make the next revision', target: null },
    ],
    problems: [{ id: id(), item: 'P1', state: 'open', text: [], source: 's' }],
    notes: [{ id: id(), kind: 'request', item: 'P2', segment: null, lines: null, text: [], by: '', answer: null, outdated: false }],
  });
  const words = (drafts) => blockersOf(m, derive(m, drafts)).map((one) => one.words);
  assert.deepEqual(words([]), [
    'Review 1 unreviewed item', 'Resolve 1 ambiguous change', 'Resolve 2 unplanned changes', 'Acknowledge 1 warning',
    'Open failed check', 'Resolve 1 open problem', 'Send 1 pending change request', 'Make the next revision',
  ]);
  const { problems, notes } = m.index;
  const drafts = [
    d('confirm_no_change', { item: 'P3' }), d('accept', { segment: 3, key: KEY }), d('accept', { segment: 5, key: KEY }),
    d('acknowledge', { segment: 1, key: KEY, tag: 'out-of-scope' }),
    d('acknowledge', { segment: 4, key: KEY, tag: 'bidi' }), d('acknowledge', { segment: 4, key: KEY, tag: 'invisible' }),
    d('accept', { segment: 4, key: KEY }),
    d('problem', { problem: problems[0].id, state: 'accepted', text: 'ok' }), d('withdraw_request', { request: notes[0].id }),
  ];
  assert.deepEqual(words(drafts), ['Open failed check', 'Make the next revision']);
});

test('drafting a change request takes a drafted merge back', () => {
  const m = model();
  const merge = d('merge');
  const request = d('request_change', { item: 'P1', text: 'x' });
  assert.deepEqual(withDraft(m, [merge], request, subject).dropped, [merge]);
});
