/** The conversation about the item that is shown: questions, change requests, problems, findings. */
import { app, draft, on, undo } from './app.js';
import { goToSegment, keyOf, linesOfCurrent } from './code.js';
import { MAX_TEXT } from './decisions.js';
import { $, announce, bdi, because, button, copyOf, el, part, prose, say } from './dom.js';
import { plain } from './text.js';
import { nthOf, view } from './view.js';
import { count, rowName } from './words.js';

/** Whether the composer writes a question or a change request. @type {'ask'|'request_change'} */
let mode = 'ask';
/** Texts that were begun, by row and mode. @type {Map<string, string>} */
const begun = new Map();
/** The change that the text is about; -1 for the whole item. */
let about = -1;
/** @type {[number, number]|null} */
let lines = null;

/** @type {any} */
let pane;

/** Where a note is anchored. @param {number|null|undefined} segment @param {number[]|null|undefined} at */
function anchor(segment, at) {
  const out = el('span');
  if (segment === null || segment === undefined) return out;
  const file = app.index.files[app.model.fileOf(segment)];
  const words = at ? (at[0] === at[1] ? `, line ${at[0]} of the change` : `, lines ${at[0]} to ${at[1]} of the change`) : '';
  const go = button('link', '', () => goToSegment(segment));
  go.append(bdi(file.path), words);
  out.append(go);
  return out;
}

/** @param {string} kind @param {string} tone @param {string} by */
function card(kind, tone, by) {
  const node = copyOf('t-note');
  part(node, 'kind').textContent = plain(kind);
  if (tone) part(node, 'kind').classList.add(tone);
  say(part(node, 'by'), by);
  return node;
}

/** @param {import('./types.js').Note} note */
function drawNote(note) {
  const withdrawn = app.derived.withdrawalOf(note.id);
  const words = note.kind === 'question' ? 'Question' : note.kind === 'request' ? (withdrawn ? 'Change request, withdrawn' : 'Change request, pending') : 'Change request, sent';
  const node = card(words, note.kind === 'request' && !withdrawn ? 'warn' : '', note.by);
  const where = part(node, 'about');
  if (note.segment !== null || note.outdated) {
    where.hidden = false;
    where.append(anchor(note.segment, note.lines));
    if (note.outdated) where.append(el('span', 'warn', ' ! the code has changed since'));
  }
  prose(part(node, 'text'), note.text);
  const answer = part(node, 'answer');
  if (note.answer) {
    answer.hidden = false;
    prose(answer, note.answer);
  } else if (note.kind === 'question') {
    answer.hidden = false;
    answer.append(el('span', 'muted', 'Not answered yet.'));
  }
  if (note.kind === 'request') {
    const act = withdrawn
      ? button('quiet small', 'Undo', () => undo((d) => d.id === withdrawn.id))
      : button('quiet small', 'Withdraw', () => draft({ type: 'withdraw_request', request: note.id }));
    if (withdrawn) part(node, 'kind').classList.add('drafted');
    because(act, app.locked);
    part(node, 'act').append(act);
  }
  return node;
}

/** @param {import('./types.js').Decision} d */
function drawDraft(d) {
  const node = card(d.type === 'ask' ? 'Question, drafted' : 'Change request, drafted', '', '');
  node.classList.add('is-draft');
  if (d.segment !== undefined) {
    part(node, 'about').hidden = false;
    part(node, 'about').append(anchor(d.segment, d.from ? [d.from, d.to] : null));
  }
  say(part(node, 'text'), d.text);
  part(node, 'act').append(
    button('quiet small', 'Edit', () => {
      mode = /** @type {'ask'} */ (d.type);
      about = d.segment ?? -1;
      lines = d.from ? [d.from, d.to] : null;
      begun.set(`${app.row} ${mode}`, d.text);
      undo((one) => one.id === d.id, 'Taken back into the text field');
      drawTalk();
      $('text').focus();
    }),
    button('quiet small', 'Undo', () => undo((one) => one.id === d.id)),
  );
  return node;
}

/**
 * A text field and buttons that judge a problem or a finding.
 *
 * @param {any} node
 * @param {[string, string][]} states word of the contract, label
 * @param {(state: string, text: string) => void} act
 */
function judge(node, states, act) {
  const open = button('quiet small', `${states.length > 1 ? 'Judge' : states[0][1]}…`, () => {
    const more = part(node, 'more');
    more.hidden = !more.hidden;
    if (!more.hidden) more.querySelector('textarea').focus();
  });
  because(open, app.locked);
  part(node, 'act').append(open);
  const text = el('textarea');
  text.rows = 2;
  text.setAttribute('aria-label', 'Why');
  text.placeholder = 'Why';
  const buttons = states.map(([state, label]) => button('plain small', label, () => {
    if (text.value.trim() === '') {
      announce('Say why first.');
      text.focus();
    } else if (!tooLong(text.value)) act(state, text.value.trim());
  }));
  part(node, 'more').append(text, el('div', 'row', ...buttons));
}

/** @param {string} text */
function tooLong(text) {
  const n = [...text].length;
  if (n > MAX_TEXT) announce(`The text has ${n.toLocaleString('en')} characters; ${MAX_TEXT.toLocaleString('en')} are allowed.`);
  return n > MAX_TEXT;
}

/** @param {import('./types.js').Problem} problem */
function drawProblem(problem) {
  const drafted = app.derived.problemDraft(problem.id);
  const isOpen = problem.state === 'open' && !drafted;
  const node = card(drafted ? 'Problem, accepted' : `Problem, ${problem.state}`, isOpen ? 'bad' : 'neutral', problem.source);
  prose(part(node, 'text'), problem.text);
  if (drafted) {
    node.classList.add('is-draft');
    part(node, 'kind').classList.add('drafted');
    part(node, 'act').append(button('quiet small', 'Undo', () => undo((d) => d.id === drafted.id)));
  } else if (problem.state === 'open') {
    judge(node, [['accepted', 'Accept problem']], (state, text) => draft({ type: 'problem', problem: problem.id, state, text }));
  }
  return node;
}

/** @param {import('./types.js').Finding} finding */
function drawFinding(finding) {
  const drafted = app.derived.findingDraft(finding.id);
  const node = card(`Finding, ${drafted ? drafted.state : finding.state}`, '', finding.subject);
  if (finding.location) {
    part(node, 'about').hidden = false;
    part(node, 'about').append(bdi(finding.location, 'mono'));
  }
  prose(part(node, 'text'), finding.text);
  if (drafted) {
    node.classList.add('is-draft');
    part(node, 'kind').classList.add('drafted');
    part(node, 'act').append(button('quiet small', 'Undo', () => undo((d) => d.id === drafted.id)));
  } else {
    judge(node, [['accepted', 'Accept'], ['rejected', 'Reject'], ['deferred', 'Defer']],
      (state, text) => draft({ type: 'finding', finding: finding.id, state, text }));
  }
  return node;
}

let drawnRow = '';
function drawTalk() {
  const { index } = app;
  const item = app.model.items.get(app.row);
  part(pane, 'title').textContent = item ? `Conversation about ${app.row}` : `About ${rowName(app.row)}`;
  const notes = part(pane, 'notes');
  // To ask where it stands costs a layout, and another row begins at its top.
  const top = drawnRow === app.row ? notes.scrollTop : 0;
  drawnRow = app.row;
  notes.replaceChildren();
  if (item) {
    for (const one of index.problems.filter((problem) => problem.item === item.id)) notes.append(drawProblem(one));
    for (const one of index.notes.filter((note) => note.item === item.id)) notes.append(drawNote(one));
    for (const d of app.drafts) if ((d.type === 'ask' || d.type === 'request_change') && d.item === item.id) notes.append(drawDraft(d));
    if (index.findings.length) {
      notes.append(el('p', 'empty', 'Findings of the advisory reader on the whole change. They never keep it from merging.'));
      for (const one of index.findings) notes.append(drawFinding(one));
    }
    if (!notes.childNodes.length) notes.append(el('p', 'empty', 'Nothing was asked or requested yet.'));
  } else {
    notes.append(el('p', 'empty', 'Questions and change requests belong to a plan item. Assign a change to an item to talk about it there.'));
  }
  if (top) notes.scrollTop = top;
  drawComposer();
}

function drawComposer() {
  const item = app.model.items.get(app.row);
  const isAsk = mode === 'ask';
  part(pane, 'composer').hidden = !item;
  for (const [name, on_] of /** @type {const} */ ([['ask', isAsk], ['request', !isAsk]])) {
    const tab = part(pane, name);
    tab.setAttribute('aria-selected', String(on_));
    tab.tabIndex = on_ ? 0 : -1;
  }
  part(pane, 'panel').setAttribute('aria-labelledby', isAsk ? 'tab-ask' : 'tab-request');
  const pending = app.derived.items.get(app.row)?.pending ?? 0;
  part(pane, 'request').replaceChildren('Request change', ...(pending ? [el('span', 'count', String(pending)), el('span', 'vh', ' pending')] : []));
  part(pane, 'hint').textContent = isAsk
    ? 'Answered by a reading agent after apply. It changes nothing.'
    : 'Saved for the next revision of the plan. Nothing merges while requests are pending.';
  part(pane, 'label').textContent = isAsk ? 'Question' : 'What has to change';
  part(pane, 'add').textContent = isAsk ? 'Draft question' : 'Draft request';
  because(part(pane, 'add'), app.locked);
  const text = $('text');
  text.placeholder = isAsk ? `Ask about ${app.row}` : `What has to change in ${app.row}`;
  text.value = begun.get(`${app.row} ${mode}`) ?? '';
  drawLeft();
  drawAbout();
}

function drawLeft() {
  const n = MAX_TEXT - [...$('text').value].length;
  const left = part(pane, 'left');
  left.textContent = n < 500 ? `${n.toLocaleString('en')} characters left` : '';
  left.className = n < 0 ? 'left bad' : 'left';
}

/** The row that says what the text is about. */
function drawAbout() {
  const where = part(pane, 'subject');
  where.replaceChildren();
  if (about < 0 || !view.has(about)) {
    if (app.current >= 0 && app.model.items.has(app.row)) {
      const nth = nthOf(app.current);
      where.append('About the whole item. ', button('link', `About change ${nth} instead`, () => takeAnchor()));
    }
    return;
  }
  const file = app.index.files[app.model.fileOf(about)];
  where.append(el('span', '', `Change ${nthOf(about)}, `), bdi(file.path, 'mono'));
  const n = linesOfCurrent();
  if (n > 0 && about === app.current) {
    const field = (/** @type {0|1} */ at, /** @type {string} */ label) => {
      const input = el('input', 'small');
      input.type = 'number';
      input.min = '1';
      input.max = String(n);
      input.value = lines ? String(lines[at]) : '';
      input.setAttribute('aria-label', label);
      input.placeholder = at ? String(n) : '1';
      input.addEventListener('change', () => {
        const value = Math.max(1, Math.min(n, Number(input.value) || 1));
        const [from, to] = lines ?? [1, n];
        lines = at ? [Math.min(from, value), value] : [value, Math.max(to, value)];
        drawAbout();
      });
      return input;
    };
    where.append('lines ', field(0, 'First line'), 'to', field(1, 'Last line'));
  }
  where.append(button('link', 'About the whole item', () => {
    about = -1;
    lines = null;
    drawAbout();
  }));
}

function takeAnchor() {
  about = app.current;
  lines = app.picked;
  drawAbout();
}

/** Opens the composer for a change request about the current change. */
export function requestChange() {
  if (!app.model.items.has(app.row)) {
    announce('Change requests belong to a plan item.');
    return;
  }
  mode = 'request_change';
  takeAnchor();
  document.dispatchEvent(new CustomEvent('pane', { detail: 'talk' }));
  drawComposer();
  $('text').focus();
}

/** @param {Event} event */
async function add(event) {
  event.preventDefault();
  const text = $('text');
  const words = text.value.trim();
  if (app.locked) {
    announce(app.locked);
    return;
  }
  if (words === '') {
    announce('There is no text yet.');
    text.focus();
    return;
  }
  if (tooLong(words)) return;
  /** @type {any} */
  const decision = { type: mode, item: app.row };
  if (about >= 0 && view.has(about)) {
    decision.segment = about;
    decision.key = await keyOf(about);
    if (lines) [decision.from, decision.to] = lines;
  }
  decision.text = words;
  begun.delete(`${app.row} ${mode}`);
  text.value = '';
  about = -1;
  lines = null;
  draft(decision);
}

/** Builds the pane. */
export function startTalk() {
  pane = copyOf('t-talk');
  $('talk').append(pane);
  const text = $('text');
  text.addEventListener('input', () => {
    begun.set(`${app.row} ${mode}`, text.value);
    drawLeft();
  });
  text.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) add(event);
  });
  part(pane, 'composer').addEventListener('submit', add);
  const choose = (/** @type {'ask'|'request_change'} */ to) => {
    mode = to;
    drawComposer();
  };
  part(pane, 'ask').addEventListener('click', () => choose('ask'));
  part(pane, 'request').addEventListener('click', () => choose('request_change'));
  pane.querySelector('.tabs').addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight') return;
    choose(mode === 'ask' ? 'request_change' : 'ask');
    part(pane, mode === 'ask' ? 'ask' : 'request').focus();
  });
  part(pane, 'hide').addEventListener('click', () => document.dispatchEvent(new CustomEvent('pane', { detail: 'hide-talk' })));
  on(['drafts', 'row', 'locked'], drawTalk);
  on(['current'], () => {
    if (app.picked && view.has(app.current) && $('text').value === '') {
      about = app.current;
      lines = app.picked;
    } else if (about >= 0 && about !== app.current && $('text').value === '') {
      about = -1;
      lines = null;
    }
    drawAbout();
  });
}

/** For labels of the strip. @param {number} n */
export const requestsWords = (n) => `Send ${count(n, 'change request')}`;

/** @param {string} text */
export const oneLine = (text) => plain(text).replace(/\s+/g, ' ').slice(0, 120);
