/** A record on paper: plan, rows, decisions and keys, and code of the row that is shown. */
import { app, on } from './app.js';
import { keyOf, marksOf } from './code.js';
import { readPart } from './data.js';
import { $, bdi, el, say } from './dom.js';
import { collect } from './hunks.js';
import { view } from './view.js';
import { STATES, count, decisionWords, rowName } from './words.js';

const MAX_LINES = 5000;
/** Keys of the ambiguous and unplanned segments; worked out ahead, because printing can not wait. @type {Map<number, string>} */
const keys = new Map();

function drawPaper() {
  const { index, derived } = app;
  const paper = $('paper');
  paper.replaceChildren(el('h1', '', `Review of #${index.issue.number} `, bdi(index.issue.title)));
  paper.append(el('p', '', bdi(index.repository), `, plan revision ${index.revision}, ${index.base} to ${index.head}. Data of ${index.rendered_at}; digest ${app.digest}.`));
  paper.append(el('p', '', `${derived.nApproved} of ${index.items.length} items approved, ${derived.nDrafted} drafted here. ${count(app.blockers.length, 'blocker')}.`));
  const table = el('table', '', el('tr', '', ...['Row', 'Title', 'State', 'Changes', 'Marks'].map((name) => el('th', '', name))));
  for (const state of derived.items.values()) {
    const look = STATES.get(state.state);
    table.append(el('tr', '', el('td', '', state.item.id), say(el('td'), state.item.title), el('td', '', `${look?.icon} ${look?.word}${state.drafted ? ' (drafted)' : ''}`),
      el('td', '', String(state.segments.length)), el('td', '', marksOf(state.item.id).map((mark) => `${mark.icon} ${mark.name}: ${mark.word}`).join('; '))));
  }
  for (const row of /** @type {const} */ (['ambiguous', 'unplanned'])) {
    table.append(el('tr', '', el('td', '', rowName(row)), el('td'), el('td', '', `${derived.open[row].length} open`), el('td', '', String(app.model[row].length)), el('td')));
  }
  paper.append(el('h2', '', 'Rows'), table);
  if (app.blockers.length) paper.append(el('h2', '', 'What keeps this from merging'), el('ul', '', ...app.blockers.map((one) => say(el('li'), one.words))));
  if (app.drafts.length) paper.append(el('h2', '', 'Drafted here, not applied'), el('ul', '', ...app.drafts.map((d) => el('li', '', decisionWords(d)))));
  const resolved = [...app.model.ambiguous, ...app.model.unplanned];
  if (resolved.length) {
    const list = el('table', '', el('tr', '', ...['Change', 'File', 'Choice', 'Key'].map((name) => el('th', '', name))));
    for (const segment of resolved.slice(0, MAX_KEYS)) {
      const choice = derived.choices.get(segment);
      list.append(el('tr', '', el('td', '', `s${segment}`), el('td', '', bdi(index.files[app.model.fileOf(segment)].path)),
        el('td', '', choice ? (choice.item ? `assigned to ${choice.item}` : 'accepted') + (choice.draft ? ' (drafted)' : '') : 'open'), el('td', 'key', keys.get(segment) ?? '')));
    }
    paper.append(el('h2', '', 'Ambiguous and unplanned changes'), list);
    if (resolved.length > MAX_KEYS) paper.append(el('p', '', `Only the first ${MAX_KEYS} of ${resolved.length.toLocaleString('en')} changes are listed${keys.size ? '' : '; their keys are printed by the button Print… of the page'}.`));
  }
  drawCode(paper);
}

/** @param {any} paper */
function drawCode(paper) {
  paper.append(el('h2', '', `Code of ${rowName(app.row)}`));
  const total = view.code.reduce((n, one) => n + one.lines, 0);
  const files = ahead.code === view.code ? ahead.files : view.code.flatMap((one) => one.files), there = linesIn(files);
  if (total > Math.min(there, MAX_LINES)) paper.append(el('p', '', `Only the first ${Math.min(there, MAX_LINES).toLocaleString('en')} of ${total.toLocaleString('en')} lines are printed.`));
  let left = MAX_LINES;
  for (const f of files) {
    if (left <= 0) break;
    paper.append(el('h2', '', bdi(index_(f.file))));
    for (const h of f.hunks) {
      for (let i = 0; i < h.n && left > 0; i++) {
        if (h.texts[i] === undefined) continue;
        left--;
        const kind = h.kinds[i], seg = h.segments[i];
        const line = el('div', `r${kind === '+' ? ' a' : kind === '-' ? ' d' : ''}`, say(el('span'), h.texts[i] ?? '', false));
        if (seg >= 0 && h.segments[i - 1] !== seg) line.dataset.g = rowName(app.model.rowNameOf(seg));
        line.dataset.n = `${String(h.olds[i] || '').padStart(view.digits)} ${String(h.news[i] || '').padStart(view.digits)} ${kind}`;
        paper.append(line);
      }
    }
  }
}

/** @param {import('./hunks.js').ViewFile[]} files */
const linesIn = (files) => files.reduce((n, f) => n + f.hunks.reduce((m, h) => m + h.texts.filter((text) => text !== undefined).length, 0), 0);

/** Code that may be printed, read ahead for the same reason as keys. */
const ahead = { code: /** @type {import('./view.js').Section[]} */ ([]), files: /** @type {import('./hunks.js').ViewFile[]} */ ([]) };

async function readAhead() {
  const { code, has } = view, files = [];
  if (ahead.code === code) return;
  for (const one of code) {
    const blocks = await Promise.all(one.reads.map(([row, part]) => readPart(row, part)));
    if (code !== view.code) return;
    files.push(...collect(blocks, has, one.from, one.to));
    if (linesIn(files) >= MAX_LINES) break;
  }
  Object.assign(ahead, { code, files });
}

/** @type {any} */
let aheadTimer = 0;

/** @param {number} file */
const index_ = (file) => app.index.files[file].path;

const MAX_KEYS = 400;
const keyed = () => [...app.model.ambiguous, ...app.model.unplanned];

async function makeKeys() {
  for (const segment of keyed().slice(0, MAX_KEYS)) {
    if (!keys.has(segment)) keys.set(segment, await keyOf(segment));
  }
}

/** Works out what printing needs, and opens the browser's dialog. */
async function printAll() {
  await Promise.all([makeKeys(), readAhead()]);
  print();
}

/** Builds the print path. */
export function startPrint() {
  $('print').addEventListener('click', printAll);
  // The browser's own command does not wait. Where they are many, only ours prints keys.
  if (keyed().length <= MAX_KEYS) on(['locked'], () => requestIdleCallback(makeKeys));
  on(['row'], () => {
    clearTimeout(aheadTimer);
    aheadTimer = setTimeout(() => requestIdleCallback(readAhead), 500);
  });
  addEventListener('beforeprint', () => {
    $('paper').hidden = false;
    drawPaper();
  });
  addEventListener('afterprint', () => {
    $('paper').hidden = true;
    $('paper').replaceChildren();
  });
}
