/** Search through all rows, also those that were never drawn. */
import { app } from './app.js';
import { goToSegment, showRow } from './code.js';
import { readRow } from './data.js';
import { $, bdi, el, proseText, say } from './dom.js';
import { count, rowName } from './words.js';

const MAX_HITS = 200;

/** @typedef {{row: string, path: string, text: string, segment: number}} Hit */
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
    if (index.rows[number].changes === 0) continue;
    const block = await readRow(number);
    if (isLate()) break;
    const whole = block.text.toLowerCase();
    if (!whole.includes(wanted)) continue;
    const lowered = whole.split('\n');
    let at = 0;
    for (const file of block.files) {
      for (const hunk of file.hunks) {
        const from = at;
        at += hunk.texts.length;
        let hit = false;
        for (let i = from; i < at && !hit; i++) hit = lowered[i].includes(wanted);
        if (!hit) continue;
        const places = (hunk.here ?? [[0, hunk.kinds.length]]).flatMap(([from, length]) => Array.from({ length }, (_, i) => from + i));
        // Segment of each place, counted along.
        let segment = -1, left = 0;
        const owners = Array.from(hunk.kinds, (kind) => {
          if (kind === ' ') return -1;
          if (left === 0) left = hunk.counts[++segment];
          left--;
          return hunk.first + segment;
        });
        places.forEach((place, i) => {
          const owner = owners[place];
          if (owner < 0 || model.rowOf[owner] !== number || !lowered[from + i].includes(wanted)) return;
          add({ row: index.rows[number].row, path: index.files[file.file].path, text: hunk.texts[i], segment: owner });
        });
      }
    }
  }
  return { hits: out, n };
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
  if (hit.segment >= 0) goToSegment(hit.segment);
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
