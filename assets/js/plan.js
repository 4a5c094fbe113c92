/** The list of rows on the left. */
import { app, on } from './app.js';
import { goToSegment, marksOf, showRow } from './code.js';
import { $, bdi, button, copyOf, el, part, say } from './dom.js';
import { plain } from './text.js';
import { STATES, count, rowName } from './words.js';

/** All rows in the order in which they are listed. */
export const rowNames = () => [...app.index.items.map((item) => item.id), 'ambiguous', 'unplanned', 'accepted'];

/** @param {string} row */
function drawRow(row) {
  const { derived } = app;
  const node = copyOf('t-plan-row');
  const state = derived.items.get(row);
  const open = part(node, 'open');
  open.dataset.row = row;
  open.addEventListener('click', () => showRow(row));
  const isOn = app.row === row;
  node.classList.toggle('on', isOn);
  if (isOn) open.setAttribute('aria-current', 'true');
  const icon = part(node, 'state'), title = part(node, 'title'), badge = part(node, 'badge');
  let n = 0, words = '';
  if (state) {
    const look = STATES.get(state.state) ?? { icon: '', word: state.state, tone: '' };
    icon.textContent = look.icon;
    icon.className = `state ${look.tone}`;
    words = `${look.word}${state.drafted ? ', drafted' : ''}`;
    part(node, 'id').textContent = row;
    say(title, state.item.title);
    n = state.segments.length;
    for (const mark of marksOf(row)) {
      const one = el('span', mark.tone, el('span', 'vh', `${mark.sentence}. `), mark.icon);
      one.title = plain(mark.sentence);
      part(node, 'marks').append(one);
    }
    const notes = [];
    if (state.state === 'stale') notes.push(el('span', 'warn', 'stale'));
    if (state.drafted) notes.push(el('span', 'drafted', 'drafted'));
    if (state.pending) notes.push(el('span', 'muted', `${state.pending} pending`));
    if (notes.length) {
      badge.hidden = false;
      notes.forEach((note, at) => badge.append(at ? ' · ' : '', note));
    }
    title.title = plain(state.reasons.map((one) => one.words).join('; '));
  } else {
    node.classList.add('special', `row-${row}`);
    part(node, 'id').remove();
    title.style.gridColumn = '2 / 4';
    title.textContent = rowName(row);
    const open_ = row === 'accepted' ? derived.accepted.length : derived.open[/** @type {'ambiguous'} */ (row)].length;
    n = open_;
    const tone = open_ === 0 ? 'neutral' : row === 'ambiguous' ? 'warn' : row === 'unplanned' ? 'bad' : 'neutral';
    icon.textContent = open_ === 0 ? '–' : row === 'ambiguous' ? '!' : row === 'unplanned' ? '✕' : '✓';
    icon.className = `state ${tone}`;
    words = count(open_, row === 'accepted' ? 'accepted change' : 'open change');
    const drafted = [...derived.choices].filter(([segment, choice]) => choice.draft
      && (row === 'accepted' ? choice.item === null : app.model.rowNameOf(segment) === row)).length;
    part(node, 'marks').append(el('span', '', open_ === 0 && row !== 'accepted' ? 'nothing open' : row === 'accepted' ? 'as they are' : 'to resolve'));
    if (drafted) {
      badge.hidden = false;
      badge.append(el('span', 'drafted', `${drafted} drafted`));
    }
  }
  icon.append(el('span', 'vh', ` ${words}. `));
  part(node, 'count').append(String(n), el('span', 'vh', n === 1 ? ' change. ' : ' changes. '));
  if (state && isOn) drawDeclared(part(node, 'declared'), state);
  return node;
}

/** @param {any} list @param {import('./layers.js').ItemState} state */
function drawDeclared(list, state) {
  list.hidden = false;
  list.setAttribute('aria-label', 'Declared files');
  const kinds = new Map([['edit', '~'], ['add', '+'], ['delete', '−'], ['rename', '→']]);
  for (const file of state.item.files) {
    const segment = state.segments.find((one) => app.index.files[app.model.fileOf(one)].path === file.path);
    const kind = el('span', 'kind', kinds.get(file.kind) ?? '');
    kind.title = file.kind;
    const line = el('li', '', kind);
    if (segment === undefined) line.append(bdi(file.path, 'muted'));
    else {
      const go = button('', '', () => goToSegment(segment));
      go.append(bdi(file.path));
      line.append(go);
    }
    line.title = segment === undefined ? 'declared, and not changed' : plain(file.change);
    list.append(line);
  }
}

function drawPlan() {
  const items = $('items');
  const focused = /** @type {HTMLElement|null} */ (document.activeElement)?.dataset?.row;
  const rows = rowNames().map(drawRow);
  rows[app.index.items.length].classList.add('first-special');
  items.replaceChildren(...rows);
  if (focused) items.querySelector(`[data-row="${focused}"]`)?.focus();
  // Together with the layout of the frame.
  requestAnimationFrame(() => items.querySelector('.on')?.scrollIntoView({ block: 'nearest' }));
  const counts = $('counts');
  counts.replaceChildren();
  const { open } = app.derived;
  for (const row of /** @type {const} */ (['unplanned', 'ambiguous'])) {
    if (counts.childNodes.length) counts.append(' · ');
    const words = `${open[row].length} ${row}`;
    counts.append(open[row].length ? button('', words, () => showRow(row)) : words);
  }
  counts.append(' changes');
}

/** Builds the pane. */
export function startPlan() {
  on(['drafts', 'row'], drawPlan);
  const { index } = app;
  $('foot').append(`Data of ${index.rendered_at.replace('T', ' ').replace('Z', ' UTC')}. This file holds source code and conversation: it is as confidential as the repository.`);
}
