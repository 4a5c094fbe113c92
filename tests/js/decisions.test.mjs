import assert from 'node:assert/strict';
import { test } from 'node:test';
import { carry, contradictions, fault, readFile, writeFile } from '../../assets/js/decisions.js';
import { KEY, id } from './sample.mjs';

const form = (more = {}) => ({
  schema_version: 1, data_digest: 'sha256:1', repository: 'r', task: 't', base: 'b', head: 'h', revision: 3,
  items: { P1: { fingerprint: 'f1', state: 'unreviewed' }, P2: { fingerprint: 'f2', state: 'unreviewed' } }, ...more,
});
const d = (type, more = {}) => ({ id: id(), type, ...more });
const here = { dependencies: (item) => (item === 'P2' ? ['P1'] : []), segmentOf: (key) => (key === KEY ? 7 : undefined), isOpen: () => true };

test('only decisions of the contract are taken', () => {
  assert.equal(fault(d('approve', { item: 'P1' })), '');
  assert.equal(fault(d('ask', { item: 'P1', text: 'x', segment: 1, key: KEY, from: 1, to: 2 })), '');
  assert.match(fault(d('approve', { item: 'P1', extra: 1 })), /unknown field "extra"/);
  assert.match(fault(d('approve', {})), /item is missing/);
  assert.match(fault(d('approve', { item: '__proto__' })), /item has the wrong form/);
  assert.match(fault(d('constructor')), /unknown type/);
  assert.match(fault(d('ask', { item: 'P1', text: 'x', segment: 1 })), /key is missing/);
  assert.match(fault({ type: 'merge', id: 'x' }), /UUID/);
  assert.match(fault(null), /not an object/);
});

test('a file is written as the contract has it', () => {
  const decision = d('approve', { item: 'P1' });
  const text = writeFile({ payload_b64: 'AA==', signature: 'BB==' }, [decision], { P1: 'all' }, '  ', new Date('2026-11-30T12:30:00.123Z'));
  assert.deepEqual(JSON.parse(text), {
    schema_version: 1, form: { payload_b64: 'AA==', signature: 'BB==' }, saved_at: '2026-11-30T12:30:00Z',
    reviewer: null, shown: { P1: 'all' }, decisions: [decision],
  });
});

test('a file is read, and what is wrong in it is named', () => {
  const file = {
    schema_version: 1, form: { payload_b64: btoa(JSON.stringify(form())), signature: 's' }, saved_at: '', reviewer: null, shown: {},
    decisions: [d('approve', { item: 'P1' }), { type: 'x' }],
  };
  const read = readFile(JSON.stringify(file));
  assert.equal(read.file.decisions.length, 1);
  assert.equal(read.bad.length, 1);
  assert.equal(read.payload.revision, 3);
  assert.match(readFile('{').error, /not JSON/);
  assert.match(readFile('{"schema_version":2}').error, /version 1/);
  assert.match(readFile('{"schema_version":1}').error, /no form/);
});

test('contradictions are pairs', () => {
  const approve = d('approve', { item: 'P1' }), withdraw = d('withdraw', { item: 'P1' });
  assert.deepEqual(contradictions([approve, withdraw]).map(([a, b]) => [a, b]), [[approve, withdraw]]);
  const merge = d('merge'), request = d('request_change', { item: 'P1', text: 'x' });
  assert.deepEqual(contradictions([request, merge]).map(([a, b]) => [a, b]), [[merge, request]]);
  const accept = d('accept', { segment: 1, key: KEY }), assign = d('assign', { segment: 1, key: KEY, item: 'P1' });
  assert.equal(contradictions([accept, assign]).length, 1);
  assert.deepEqual(contradictions([approve, accept]), []);
});

test('decisions of an older page are kept where nothing changed, and listed where something did', () => {
  const now = form({ data_digest: 'sha256:2', items: { P1: { fingerprint: 'new' }, P2: { fingerprint: 'f2' } } });
  const decisions = [
    d('approve', { item: 'P1' }), d('approve', { item: 'P2' }), d('approve', { item: 'P9' }),
    d('accept', { segment: 3, key: KEY }), d('accept', { segment: 4, key: `sha256:${'1'.repeat(64)}` }),
    d('ask', { item: 'P1', text: 'why' }), d('merge'),
  ];
  const { kept, lost } = carry(decisions, form(), now, here);
  assert.deepEqual(kept.map((one) => [one.type, one.segment]), [['accept', 7], ['ask', undefined]]);
  assert.deepEqual(lost.map((one) => one.reason), [
    'the change it is about is no longer there', 'P1 has changed since',
    'P2 depends on P1, which has changed since', 'the plan has no item P9',
    'it was made on another state of the review',
  ]);
});

test('on the same page everything is kept', () => {
  const decisions = [d('approve', { item: 'P1' }), d('merge'), d('request_change', { item: 'P1', text: 'x' })];
  assert.equal(carry(decisions, form(), form(), here).kept.length, 3);
});

test('an approval is judged after the choices of its file', () => {
  const decisions = [d('approve', { item: 'P1' }), d('assign', { segment: 3, key: KEY, item: 'P1' })];
  const isOpen = (one, before) => one.type !== 'approve' || before.some((other) => other.type === 'assign');
  const { kept } = carry(decisions, form(), form(), { ...here, isOpen });
  assert.deepEqual(kept.map((one) => one.type), ['assign', 'approve']);
});

test('names that objects have from birth are no items', () => {
  const { lost } = carry([d('withdraw', { item: 'P1' })], form(), form({ items: {} }), here);
  assert.equal(lost[0].reason, 'the plan has no item P1');
});
