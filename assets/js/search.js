/** Search through all rows, also those that were never drawn. */
import { app } from './app.js';
import { goToSegment, showRow } from './code.js';
import { readPart } from './data.js';
import { $, bdi, el, proseText, say } from './dom.js';
import { expand, spanOf } from './hunks.js';
import { count, rowName } from './words.js';

const MAX_HITS = 200;

/** @typedef {{row: string, path: string, text: string, segment: number, line?: number}} Hit */
/** @type {Hit[]} */
let hits = [];
let chosen = 0;
let searchTurn = 0;

/**
 * @param {string} query
 * @param {() => boolean} isLate whether another search has begun
 * @returns {Promise<{hits: Hit[], n: number}>}
 */
export async function findAll(query, isLate = () => false) {
  const { index, model } = app;
  const wanted = query.toLowerCase();
  /** @type {Hit[]} */
  const out = [];
  let n = 0;
  const add = (/** @type {Hit} */ hit) => {
    n++;
    if (out.length < MAX_HITS) out.push(hit);
  };
  const has = (/** @type {string} */ text) => text.toLowerCase().includes(wanted);
  for (const item of index.items) {
    if (has(item.id) || has(item.title) || has(item.intent)) add({ row: item.id, path: '', text: item.title, segment: -1 });
  }
  for (const note of index.notes) {
    const text = [note.text, note.answer ?? []].map(proseText).find(has);
    if (text !== undefined) add({ row: note.item, path: 'conversation', text, segment: -1 });
  }
  index.files.forEach((file, f) => {
    if (!has(file.path) && !(file.old_path && has(file.old_path))) return;
    const segment = f ? index.files[f - 1].end : 0;
    if (segment < file.end) add({ row: model.rowNameOf(segment), path: file.path, text: '', segment });
  });
  for (let number = 0; number < index.rows.length; number++) {
    for (let part = 0; part < index.parts[number].length; part++) {
      const block = await readPart(number, part);
      if (isLate()) return { hits: out, n };
      if (has(block.text)) findIn(block, number, has, add);
    }
  }
  return { hits: out, n };
}

/** Hits in the row's own lines of one block. @param {import('./types.js').Block} block @param {number} number place of the row @param {(text: string) => boolean} has @param {(hit: Hit) => void} add */
function findIn(block, number, has, add) {
  const { index, model } = app;
  for (const file of block.files) {
    for (const hunk of file.hunks) {
      if (!hunk.texts.some(has)) continue;
      const lines = expand(hunk);
      for (let i = 0; i < lines.n; i++) {
        const segment = lines.segments[i], text = lines.texts[i];
        if (segment < 0 || text === undefined || model.rowOf[segment] !== number || !has(text)) continue;
        const { begin, before } = spanOf(lines, segment);
        add({ row: index.rows[number].row, path: index.files[file.file].path, text, segment, line: i - begin + before });
      }
    }
  }
}

function drawHits() {
  const box = $('hits');
  box.replaceChildren(...hits.map((hit, n) => {
    const node = el('div', 'hit', el('span', 'row', rowName(hit.row)), hit.path ? bdi(hit.path, 'path') : say(el('span', 'path'), hit.text));
    if (hit.path && hit.text) node.append(say(el('span', 'text'), hit.text.trim().slice(0, 240), false));
    node.id = `hit${n}`;
    node.setAttribute('role', 'option');
    node.setAttribute('aria-selected', String(n === chosen));
    node.addEventListener('click', () => take(n));
    return node;
  }));
  mark();
}

function mark() {
  const box = $('hits');
  for (let n = 0; n < box.children.length; n++) box.children[n].setAttribute('aria-selected', String(n === chosen));
  box.children[chosen]?.scrollIntoView({ block: 'nearest' });
  if (hits.length) $('query').setAttribute('aria-activedescendant', `hit${chosen}`);
  else $('query').removeAttribute('aria-activedescendant');
}

/** @param {number} n */
function take(n) {
  const hit = hits[n];
  if (!hit) return;
  $('search').close();
  if (hit.segment >= 0) goToSegment(hit.segment, hit.line);
  else showRow(hit.row);
  $('code').focus();
}

async function run() {
  const mine = ++searchTurn;
  const query = $('query').value;
  chosen = 0;
  if (query.length < 2) {
    hits = [];
    $('hits-said').textContent = '';
    drawHits();
    return;
  }
  const found = await findAll(query, () => mine !== searchTurn);
  if (mine !== searchTurn) return;
  hits = found.hits;
  $('hits-said').textContent = found.n > hits.length ? `${count(found.n, 'hit')}, the first ${hits.length} are listed` : count(found.n, 'hit');
  drawHits();
}

export function openSearch() {
  $('search').showModal();
  $('query').select();
}

/** Builds the dialog. */
export function startSearch() {
  /** @type {any} */
  let timer = 0;
  const query = $('query');
  query.setAttribute('role', 'combobox');
  query.setAttribute('aria-controls', 'hits');
  query.setAttribute('aria-expanded', 'true');
  query.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(run, 120);
  });
  $('search').addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (step && hits.length) {
      chosen = Math.max(0, Math.min(hits.length - 1, chosen + step));
      mark();
      event.preventDefault();
    } else if (event.key === 'Enter') {
      event.preventDefault();
      take(chosen);
    }
  });
  $('open-search').addEventListener('click', openSearch);
}
