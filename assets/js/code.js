/** The code pane: the changes of one row, drawn as they are looked at. */
import { app, draft, isSeen, metaOf, on, see, tell, undo } from './app.js';
import { readImage, readPart, readWhole } from './data.js';
import { $, announce, bdi, because, button, copyOf, el, part, say } from './dom.js';
import { collect, spanOf } from './hunks.js';
import { fileKey, textKey } from './keys.js';
import { hindrances } from './layers.js';
import { List } from './list.js';
import { plain, rawOf, tokens } from './text.js';
import {
  beginView, expanded, folds, gapOf, idsOf, isFolded, lay, layout, leaveSection, metaIn, nears, nthOf, readSection,
  sectionOf, segmentsShownBy, view, wholes,
} from './view.js';
import { STATES, TAGS, changeTitle, count, marks, modeWords, rowName, size } from './words.js';

/** @typedef {import('./hunks.js').Lines} Lines */
/** @typedef {import('./hunks.js').ViewFile} ViewFile */
/** @typedef {import('./types.js').SegmentMeta} SegmentMeta */
/** @typedef {import('./view.js').Entry} Entry */
/** @typedef {import('./view.js').Section} Section */

const LONG = 400;
const HEIGHTS = new Map([['head', 220], ['file', 36], ['card', 132], ['hunk', 24], ['change', 33], ['elided', 24], ['tail', 24], ['end', 84], ['sincefile', 36]]);
/** Sections that stay read; more of them only where one is in the viewport. */
const MAX_READ = 5;
const STEP = 20;

/** Lines that are shown in full: hunk and place. @type {Set<string>} */
const opened = new Set();
/** Lines of a segment that were not in the viewport yet. @type {Map<number, {bits: Uint8Array, left: number}>} */
const partly = new Map();

/** @type {List<Entry>} */
let list;
let turn = 0;

/** Shows a row. @param {string} row @param {{segment?: number, line?: number, keep?: boolean}} [at] */
export async function showRow(row, at = {}) {
  const mine = ++turn;
  const take = await beginView(row);
  if (mine !== turn) return;
  const isOther = app.row !== row;
  if (isOther) {
    app.current = -1;
    app.picked = null;
  }
  const before = isOther ? [] : view.sections;
  app.row = row;
  take();
  // What the reader stands in is there at once; the rest comes when it is near.
  const stands = before.filter((one) => one.reads.length && one.entries).map((one) => one.from);
  const first = at.segment !== undefined && view.has(at.segment) ? [sectionOf(at.segment, at.line)]
    : at.keep && stands.length ? view.sections.filter((one) => stands.some((from) => one.from <= from && from < one.to)) : [view.sections[1]];
  await Promise.all(first.map((one) => one && !one.entries && readSection(one)));
  if (mine !== turn) return;
  list.set(view.sections, at.keep && !isOther);
  if (at.segment !== undefined && view.has(at.segment)) goTo(at.segment, at.line);
  else if (isOther) {
    app.current = view.order[0] ?? -1;
    list.redraw((entry) => entry.seg === app.current);
    list.soon();
  }
  tell('row');
  tell('current');
}

/** Reads a section that came near the viewport, and forgets one that is far. @param {Section} one */
async function need(one) {
  if (one.reading) return;
  await readSection(one);
  if (!view.sections.includes(one)) return;
  list.change(one);
  const read = view.sections.filter((other) => other.reads.length && other.entries);
  if (read.length <= MAX_READ) return;
  const at = view.sections.indexOf(one), current = sectionOf(app.current);
  const far = read.filter((other) => other !== current).sort((a, b) => Math.abs(view.sections.indexOf(b) - at) - Math.abs(view.sections.indexOf(a) - at))[0];
  if (!far || list.isMounted(far)) return;
  leaveSection(far);
  list.change(far);
}

/** A button that shows more of a gap. @param {Entry} entry */
function moreOf(entry) {
  const f = /** @type {ViewFile} */ (entry.f), gap = gapOf(f, entry.h ? `${entry.h.pos}` : 'end');
  return button('', `Show ${wholes.has(f.file) ? Math.min(STEP, entry.left ?? 0) : STEP} more lines`, async () => {
    const lines = wholes.get(f.file) ?? await readWhole(f.file);
    if (lines) wholes.set(f.file, lines);
    nears.set(gap, (nears.get(gap) ?? 0) + STEP);
    relay();
  });
}

// Drawing.

/** @param {number} seg @returns {[string, string]} label and class of the provenance gutter */
function owner(seg) {
  const choice = app.derived.choices.get(seg);
  if (choice) return choice.item ? [choice.item, ''] : ['Accepted', 'am'];
  const row = app.model.rowNameOf(seg);
  return row === 'unplanned' ? ['Unplanned', 'un'] : row === 'ambiguous' ? ['!Ambiguous', 'am'] : [row, ''];
}

/** @param {number} seg @param {number} from @param {number} to */
function spoken(seg, from, to) {
  const row = app.model.rowNameOf(seg);
  const who = row === 'ambiguous' ? 'ambiguous' : row === 'unplanned' ? 'unplanned' : `plan item ${row}`;
  return from === to ? `Line ${from}, ${who}. ` : `Lines ${from} to ${to}, ${who}. `;
}

/** @param {HTMLElement} parent @param {string} text @param {string} runs @param {string} words @param {{crlf?: boolean, changed?: boolean}} how */
function code(parent, text, runs, words, how) {
  if (how.crlf && text.endsWith('\r')) text = text.slice(0, -1);
  const blank = how.changed ? /[ \t]+$/.exec(text)?.[0].length ?? 0 : 0;
  const body = blank ? text.slice(0, -blank) : text;
  for (const token of tokens(body, runs, words)) {
    const target = token.kind === '.' && !token.word ? parent : el('b', `${token.kind === '.' ? '' : token.kind}${token.word ? ' w' : ''}`.trim());
    if (how.changed && token.text.includes('\t')) {
      token.text.split('\t').forEach((piece, n) => {
        if (n) target.append(el('span', 'tab', '\t'));
        if (piece) say(target, piece, false);
      });
    } else {
      say(target, token.text, false);
    }
    if (target !== parent) parent.append(target);
  }
  if (blank) parent.append(el('span', 'trail', text.slice(-blank)));
}

/** @param {number|string} n */
const pad = (n) => String(n || '').padStart(view.digits);

/** Which line of its segment a line is, from 0. @param {Lines} h @param {number} i */
function lineOf(h, i) {
  const { begin, before } = spanOf(h, h.segments[i]);
  return i - begin + before;
}

/** One line of a hunk. @param {Entry} entry @param {number} i @param {'old'|'new'} [half] */
function line(entry, i, half) {
  const { f, h } = /** @type {{f: ViewFile, h: Lines}} */ (/** @type {any} */ (entry));
  const kind = h.kinds[i], seg = h.segments[i];
  const node = el('div', `r${kind === '+' ? ' a' : kind === '-' ? ' d' : ''}`);
  const body = el('span');
  const numbers = half === 'old' ? pad(h.olds[i]) : half === 'new' ? pad(h.news[i]) : `${pad(h.olds[i])} ${pad(h.news[i])}`;
  node.dataset.n = `${numbers} ${kind}`;
  if (seg >= 0) {
    if (!view.has(seg)) node.classList.add('o');
    const [label, tone] = owner(seg);
    if (tone) node.classList.add(tone);
    if (i === 0 || h.segments[i - 1] !== seg) {
      node.dataset.g = label;
      const { begin, before, total } = spanOf(h, seg);
      const number = (kind === '+' ? h.news[begin] : h.olds[begin]) - before;
      body.append(el('span', 'vh', spoken(seg, number, number + total - 1)));
    }
    if (seg === app.current) {
      node.classList.add('cur');
      const at = lineOf(h, i) + 1;
      if (app.picked && at >= app.picked[0] && at <= app.picked[1]) node.classList.add('picked');
    }
  }
  const text = h.texts[i] ?? '';
  const isOpen = opened.has(`${h.pos}:${i}`);
  const how = { crlf: f.source.crlf, changed: kind !== ' ' };
  if (text.length > LONG && !isOpen) {
    code(body, text.slice(0, LONG), h.runs[i] ?? '', h.words.get(i) ?? '', { ...how, changed: false });
    body.append(button('more', `… show all ${count(text.length, 'character')}`, () => {
      opened.add(`${h.pos}:${i}`);
      list.redraw((one) => one.h === h && (one.i === i || one.j === i));
    }));
  } else {
    if (isOpen) node.classList.add('wide');
    code(body, text, h.runs[i] ?? '', h.words.get(i) ?? '', how);
  }
  if (h.unended.has(i)) body.append(el('i', 'eof', ' ⊘ no newline at end of file'));
  node.append(body);
  return node;
}

/** @param {Entry} entry @returns {HTMLElement} */
function drawPlain(entry) {
  const node = el('div', 'r');
  node.dataset.n = `${pad(entry.to ?? 0)} ${pad(entry.from ?? 0)}  `;
  const body = el('span');
  code(body, entry.words ?? '', '', '', { crlf: entry.f?.source.crlf });
  node.append(body);
  return node;
}

/** @param {Entry} entry */
function drawPair(entry) {
  const half = (/** @type {number} */ i, /** @type {'old'|'new'} */ side) => (i >= 0 ? line(entry, i, side) : el('div', 'r none', el('span')));
  const node = el('div', 'halves', half(entry.i ?? -1, 'old'), half(entry.j ?? -1, 'new'));
  // What is equal on both sides is read aloud once, and copied once.
  if (entry.i === entry.j) node.lastElementChild?.setAttribute('aria-hidden', 'true');
  return node;
}

/** @param {Entry} entry */
function drawFile(entry) {
  const f = /** @type {ViewFile} */ (entry.f), file = app.index.files[f.file];
  const node = copyOf('t-file');
  const folded = isFolded(f.file);
  const fold = part(node, 'fold');
  fold.textContent = folded ? '▸' : '▾';
  fold.setAttribute('aria-expanded', String(!folded));
  fold.setAttribute('aria-label', `${folded ? 'Open' : 'Fold'} ${plain(file.path)}`);
  fold.addEventListener('click', () => {
    folds.set(f.file, !folded);
    if (folded && file.generated) for (const id of idsOf(f.file)) see(id);
    relay();
    const head = view.sections.flatMap((one) => one.entries ?? []).find((one) => one.t === 'file' && one.f?.file === f.file && one.later === entry.later);
    if (head) list.node(head)?.querySelector('button')?.focus();
  });
  const path = part(node, 'path');
  if (file.old_path) path.append(bdi(file.old_path), ' → ');
  path.append(bdi(file.path));
  const { similarity } = f.source;
  part(node, 'status').textContent = [
    file.status === 'modified' ? '' : file.status,
    entry.later ? 'continued' : '',
    similarity ? `${similarity}% alike` : '', file.generated ? 'generated' : '', folded ? count(idsOf(f.file).length, 'change') : '',
    f.source.left_out ? `lines around changes are not here: ${plain(f.source.left_out)}` : '',
  ].filter(Boolean).join(' · ');
  let added = 0, removed = 0;
  for (const h of f.hunks) {
    for (let i = 0; i < h.n; i++) {
      if (h.segments[i] >= 0 && view.has(h.segments[i])) h.kinds[i] === '+' ? added++ : removed++;
    }
  }
  if (f.hunks.length) part(node, 'sums').append(el('span', 'ok', `+${added}`), ' ', el('span', 'bad', `−${removed}`));
  const actions = part(node, 'actions');
  if (file.whole) {
    const isOpen = expanded.has(`${f.file}`);
    const whole = button('quiet small', isOpen ? 'Only changes' : 'Whole file', async () => {
      if (isOpen) expanded.delete(`${f.file}`);
      else {
        const lines = await readWhole(f.file);
        if (lines) wholes.set(f.file, lines);
        expanded.add(`${f.file}`);
      }
      relay();
    });
    actions.append(whole);
  }
  const left = new Map();
  for (const id of idsOf(f.file)) for (const tag of app.derived.tagsLeft(id)) left.set(tag, [...(left.get(tag) ?? []), id]);
  for (const [tag, ids] of left) {
    if (ids.length < 2) continue;
    const all = button('plain small', `Acknowledge “${TAGS.get(tag)?.[0] ?? tag}” on ${ids.length}`, async () => {
      for (const id of ids) await acknowledge(id, tag);
    });
    because(all, app.locked);
    actions.append(all);
  }
  return node;
}

/** @param {Entry} entry */
function drawHunk(entry) {
  const h = /** @type {Lines} */ (entry.h);
  const node = el('div', 'hunk');
  node.append(say(el('span', '', '⋯ '), h.context.replace(/\r$/, ''), false));
  const others = [...new Set(h.ids.filter((id) => !view.has(id)).map((id) => app.model.rowNameOf(id)))];
  if (others.length) {
    node.append(el('span', 'grow'), el('span', 'with', 'shares these lines with '));
    for (const row of others) {
      node.append(button('', rowName(row), () => showRow(row, { segment: h.ids.find((id) => app.model.rowNameOf(id) === row) })));
    }
    node.append(' ');
  }
  if (entry.left) node.append(...(others.length ? [] : [el('span', 'grow')]), moreOf(entry), ' ');
  return node;
}

/** @param {Entry} entry */
function drawElided(entry) {
  const h = /** @type {Lines} */ (entry.h);
  const rows = new Set();
  for (let i = entry.from ?? 0; i <= (entry.to ?? 0); i++) if (h.segments[i] >= 0) rows.add(app.model.rowNameOf(h.segments[i]));
  const node = el('div', 'elided', `${count((entry.to ?? 0) - (entry.from ?? 0) + 1, 'line')} of other rows not shown here: `);
  for (const row of rows) node.append(button('', rowName(row), () => showRow(row)), ' ');
  return node;
}

const ICONS = new Map([['rename', '→'], ['mode', '⚙'], ['binary', '▣'], ['empty', '□'], ['symlink', '↪'], ['submodule', '⧉']]);

/** @param {Entry} entry */
function drawCard(entry) {
  const f = /** @type {ViewFile} */ (entry.f), file = app.index.files[f.file];
  const seg = /** @type {number} */ (entry.seg);
  const { old: before, new: after, change = '' } = f.source;
  const node = copyOf('t-card');
  const [label, tone] = owner(seg);
  if (tone) node.classList.add(tone);
  if (seg === app.current) node.classList.add('cur');
  part(node, 'owner').textContent = label;
  part(node, 'icon').textContent = ICONS.get(change.split('+')[0]) ?? '•';
  part(node, 'title').textContent = changeTitle(change, before ?? null, after ?? null);
  const facts = part(node, 'facts');
  const fact = (/** @type {any} */ to, /** @type {string} */ name, /** @type {Node|string} */ a, /** @type {Node|string} */ b) => {
    const isSame = (a instanceof Node ? a.textContent : a) === (b instanceof Node ? b.textContent : b);
    to.append(el('dt', '', name), isSame ? el('dd', '', b) : el('dd', '', a, ' → ', b));
  };
  const path = (/** @type {string|undefined} */ text) => (text === undefined ? '–' : bdi(text));
  fact(facts, 'Path', path(before ? file.old_path ?? file.path : undefined), path(after ? file.path : undefined));
  fact(facts, 'Mode', before ? modeWords(before.mode) : '–', after ? modeWords(after.mode) : '–');
  if (before?.kind !== 'submodule' && after?.kind !== 'submodule') fact(facts, 'Size', size(before?.size), size(after?.size));
  if (before?.target !== undefined || after?.target !== undefined) fact(facts, 'Target', path(before?.target), path(after?.target));
  const previews = part(node, 'previews');
  for (const [words, side] of /** @type {const} */ ([['Before', before], ['After', after]])) {
    if (!side?.binary) continue;
    previews.hidden = false;
    const image = side.image === undefined ? null : readImage(side.image);
    if (image) {
      const picture = el('img');
      picture.alt = `${words}: ${image.width} by ${image.height} pixels`;
      picture.width = image.width;
      picture.height = image.height;
      picture.style.aspectRatio = `${image.width} / ${image.height}`;
      picture.style.width = `${Math.min(image.width, 360, image.width * 240 / image.height)}px`;
      picture.style.height = 'auto';
      picture.src = image.url;
      previews.append(el('figure', '', picture, el('figcaption', '', `${words}, ${image.width} × ${image.height}`)));
    } else {
      previews.append(el('figure', '', el('figcaption', '', `${words}: no preview available (${side.no_image ?? 'unknown'})`)));
    }
  }
  const details = part(node, 'details');
  fact(details, 'Object', before ? `${before.kind} ${before.oid}` : '–', after ? `${after.kind} ${after.oid}` : '–');
  node.querySelector('details')?.addEventListener('toggle', () => list.measure());
  return node;
}

/** The key of a segment, from its content. @param {number} seg */
export async function keyOf(seg) {
  const blocks = await Promise.all(app.model.partsOf(seg).map(([row, part]) => readPart(row, part)));
  const found = blocks.flatMap((block) => collect([block], (id) => id === seg));
  const [f] = found, file = app.index.files[f.file];
  if (f.card === seg) return fileKey(file, f.source.change ?? '', f.source.old ?? null, f.source.new ?? null);
  const meta = await metaOf(seg);
  return textKey(file, found.flatMap((one) => one.hunks), seg, meta.copy ?? [1, 1]);
}

/** @param {number} seg @param {string} tag */
export async function acknowledge(seg, tag) {
  draft({ type: 'acknowledge', segment: seg, key: await keyOf(seg), tag });
}

/** @param {Entry} entry */
function drawChange(entry) {
  const seg = /** @type {number} */ (entry.seg);
  const meta = metaIn(seg);
  const { derived, model } = app;
  const node = copyOf('t-change');
  const [label, tone] = owner(seg);
  if (tone) node.classList.add(tone);
  if (seg === app.current) node.classList.add('cur');
  part(node, 'owner').title = label;
  part(node, 'nth').textContent = `Change ${nthOf(seg)}`;
  const tags = part(node, 'tags');
  const row = model.rowNameOf(seg), choice = derived.choices.get(seg);
  const isOut = derived.tagsOf(seg).includes('out-of-scope');
  const owners = choice?.item && isOut ? app.index.items.filter((item) => model.declares(seg, item.id)).map((item) => item.id) : meta.scope_owner ?? [];
  const all = [...meta.tags ?? []];
  if (isOut && !all.some((tag) => tag.tag === 'out-of-scope')) all.push({ tag: 'out-of-scope' });
  for (const tag of all) tags.append(drawTag(seg, tag, owners));
  part(node, 'from').append(origin(seg, row, meta));
  const act = part(node, 'act');
  const notes = app.index.notes.filter((note) => note.segment === seg).length + app.drafts.filter((d) => d.segment === seg && (d.type === 'ask' || d.type === 'request_change')).length;
  if (notes) act.append(el('span', 'chip', count(notes, 'note')));
  if (row === 'ambiguous' || row === 'unplanned') act.append(choice ? drawChosen(seg, choice) : choose(seg));
  return node;
}

/** @param {number} seg @param {import('./types.js').Tag} tag @param {string[]} owners the items that declare its file */
function drawTag(seg, tag, owners) {
  const [name, meaning] = TAGS.get(tag.tag) ?? [tag.tag, ''];
  const isLeft = app.derived.tagsLeft(seg).includes(tag.tag);
  const must = app.derived.tagsOf(seg).includes(tag.tag);
  const chip = el('span', `chip${must ? (isLeft ? ' bad' : '') : ''}`);
  chip.title = meaning;
  chip.append(must ? (isLeft ? '✕ ' : '✓ ') : '', name);
  if (tag.tag === 'out-of-scope' && owners.length) chip.append(`, declared by ${owners.join(', ')}`);
  if (tag.tag === 'moved' && tag.runs?.length) {
    const [, lines, other] = tag.runs[0];
    chip.append(` ${count(lines, 'line')} from `, button('', `s${other}`, () => goToSegment(other)));
  }
  if (must && isLeft) {
    const yes = button('', 'Acknowledge', () => acknowledge(seg, tag.tag));
    yes.setAttribute('aria-label', `Acknowledge ${name} on this change`);
    because(yes, app.locked);
    chip.append(yes);
  } else if (must) {
    const drafted = app.derived.acknowledged.get(`${seg} ${tag.tag}`);
    chip.append(el('span', drafted ? 'drafted muted' : 'muted', drafted ? 'acknowledged, drafted' : 'acknowledged'));
    if (drafted) chip.append(button('', 'Undo', () => undo((d) => d.id === drafted.id)));
  }
  return chip;
}

/** Who made a segment, in words. @param {number} seg @param {string} row @param {SegmentMeta} meta */
function origin(seg, row, meta) {
  const out = el('span');
  const commits = (meta.commits ?? []).map((n) => app.index.commits[n]);
  if (row === 'ambiguous') out.append(`made by ${(app.model.owners.get(seg) ?? []).join(' and ')} `);
  if (meta.coarse) out.append('(the block was too large to compare line by line: it may name more than it has) ');
  if (row === 'unplanned' || row === 'ambiguous') {
    const foreign = row === 'unplanned' ? commits.filter((one) => !one.item) : commits;
    for (const commit of foreign.slice(0, 2)) {
      if (commit.was) out.append(`made for ${commit.was}, which a later revision removed · `);
      if (row === 'unplanned') out.append('by ', bdi(commit.author ?? 'unknown'), ', ');
      out.append(el('span', 'mono', commit.id.slice(0, 8)), ' “', bdi(commit.subject ?? ''), '” ');
    }
    if (foreign.length > 2) out.append(`and ${foreign.length - 2} more`);
  } else {
    const vouched = commits.find((one) => one.adopted_by);
    if (vouched) out.append('vouched for by ', bdi(vouched.adopted_by ?? ''));
    if (meta.shared_file?.length) out.append(` also declared by ${meta.shared_file.join(', ')}`);
  }
  return out;
}

/** @param {number} seg @param {{item: string|null, by: string, draft: any}} choice */
function drawChosen(seg, choice) {
  const out = el('span', 'act');
  out.append(el('span', choice.draft ? 'drafted' : '', choice.item ? `Assigned to ${choice.item}` : 'Accepted as it is'));
  if (choice.draft) {
    out.append(button('quiet small', 'Undo', () => undo((d) => d.id === choice.draft.id)));
  } else {
    out.append(bdi(choice.by, 'muted'));
    const reopen = button('quiet small', 'Undo choice', async () => draft({ type: 'unresolve', segment: seg, key: await keyOf(seg) }));
    because(reopen, app.locked);
    out.append(reopen);
  }
  return out;
}

/** @param {number} seg */
function choose(seg) {
  const out = el('span', 'act');
  const select = el('select', 'small');
  select.setAttribute('aria-label', 'Assign this change to an item');
  select.append(new Option('Assign to…', ''));
  for (const item of app.index.items) select.append(new Option(`${item.id} ${plain(item.title).slice(0, 60)}`, item.id));
  const accept = button('plain small', 'Accept as is', async () => {
    const missing = whyNotAccept(seg);
    if (missing) announce(missing);
    else draft({ type: 'accept', segment: seg, key: await keyOf(seg) });
  });
  const note = el('span', 'warn'), yes = button('plain small', 'Assign', async () => {
    draft({ type: 'assign', segment: seg, key: await keyOf(seg), item: select.value });
  });
  note.hidden = yes.hidden = true;
  select.addEventListener('change', () => {
    const state = app.derived.items.get(select.value);
    note.hidden = yes.hidden = !state;
    accept.hidden = Boolean(state);
    if (state) {
      const isFresh = state.state === 'approved';
      note.textContent = isFresh ? `! Assigning to ${select.value} makes ${select.value}’s approval stale.` : `It becomes part of ${select.value} and of its next approval.`;
      if (!app.model.declares(seg, select.value)) note.append(` ${select.value} does not declare this file.`);
      yes.textContent = `Assign to ${select.value}`;
    }
    list.measure();
  });
  because(accept, app.locked || whyNotAccept(seg));
  because(yes, app.locked);
  select.disabled = Boolean(app.locked);
  if (app.locked) select.title = plain(app.locked);
  out.append(select, note, yes, accept);
  return out;
}

/** @param {number} seg */
function whyNotAccept(seg) {
  const left = app.derived.tagsLeft(seg);
  if (left.length) return `First acknowledge: ${left.map((tag) => TAGS.get(tag)?.[0] ?? tag).join(', ')}.`;
  return isSeen(seg) ? '' : 'First look at all lines of this change.';
}

function drawHead() {
  const state = app.derived.items.get(app.row);
  const node = copyOf('t-item-head');
  const intent = part(node, 'intent'), facts = part(node, 'facts');
  if (!state) {
    const words = new Map([
      ['ambiguous', 'Changes that several items made or touched. Each must be assigned to one item, or accepted as it is.'],
      ['unplanned', 'Changes that codeboost did not make for this plan. Each must be assigned to an item, or accepted as it is.'],
      ['accepted', 'Ambiguous and unplanned changes that were accepted as they are.'],
    ]);
    intent.textContent = words.get(app.row) ?? '';
    return node;
  }
  const { item } = state;
  say(intent, item.intent);
  for (const mark of marksOf(item.id)) {
    part(node, 'marks').append(el('li', '', el('span', mark.tone, mark.icon), mark.word !== mark.name && el('span', 'of', mark.name), el('span', mark.tone, mark.word)));
  }
  const reasons = part(node, 'reasons');
  if (state.state === 'stale') {
    reasons.hidden = false;
    for (const one of state.reasons) {
      const line = el('div', '', el('strong', one.drafted ? 'drafted' : '', '! '));
      line.lastChild?.append(bdi(one.words));
      if (one.drafted) line.append(el('span', 'muted', ' (by your drafts)'));
      reasons.append(line);
      if (one.reason && (one.reason.before !== null || one.reason.after !== null)) {
        const pair = el('dl', 'pair');
        for (const [name, text] of /** @type {const} */ ([['Before', one.reason.before], ['Now', one.reason.after]])) {
          const value = el('dd');
          if (text === null) value.textContent = '–';
          else say(value, text);
          pair.append(el('dt', '', name), value);
        }
        reasons.append(pair);
      }
    }
  }
  const fact = (/** @type {string} */ name, /** @type {any} */ value) => facts.append(el('dt', '', name), el('dd', '', value));
  const checks = el('ul');
  for (const check of item.acceptance) {
    checks.append(el('li', '', el('span', 'muted', check.type === 'cmd' ? '$ ' : '· '), say(el(check.type === 'cmd' ? 'code' : 'span'), check.text)));
  }
  fact('Accepted when', checks);
  if (item.tests?.output) {
    const more = el('details', '', el('summary', 'bad', 'Output of the failed checks'), say(el('pre'), item.tests.output));
    more.addEventListener('toggle', () => list.measure());
    fact('Tests', more);
  }
  if (item.depends_on.length) {
    const deps = el('span');
    for (const id of item.depends_on) {
      const other = app.derived.items.get(id), look = STATES.get(other?.state ?? '');
      deps.append(button('link', id, () => showRow(id)), el('span', look?.tone ?? '', ` ${look?.icon ?? ''} ${look?.word ?? ''}  `));
    }
    fact('Depends on', deps);
  }
  if (item.approved_by.length) {
    const people = el('span');
    item.approved_by.forEach((name, n) => people.append(n ? ', ' : '', bdi(name)));
    fact('Approved by', people);
  }
  return node;
}

/** The four marks of an item. @param {string} id */
export function marksOf(id) {
  const state = app.derived.items.get(id);
  if (!state) return [];
  const row = app.index.rows[app.model.rowNumber.get(id) ?? -1];
  const files = new Set(state.out.map(app.model.fileOf));
  return marks(state.item, row, { ambiguous: state.openAmbiguous.length, out: state.out.length, outFiles: files.size });
}

function drawEnd() {
  const node = el('div', 'end');
  const n = view.order.length;
  if (app.since.has(app.row)) {
    node.append('This is what changed since the approval. ', button('plain small', 'Show the full change', () => setSince(false)));
    return node;
  }
  if (n === 0) {
    const none = new Map([['ambiguous', 'No ambiguous changes.'], ['unplanned', 'No unplanned changes.'], ['accepted', 'Nothing was accepted as it is.']]);
    const total = app.index.n_segments;
    node.append(none.get(app.row) ?? (total === 0 ? 'No code changes yet. No commits were made for this plan.' : `${app.row} was planned, and changed nothing.`));
    return node;
  }
  node.append(`End of ${rowName(app.row)}, ${count(n, 'change')}.`);
  const why = app.derived.items.has(app.row) ? hindrances(app.derived, app.row, isSeen) : [];
  for (const one of why) node.append(button('plain small', one.words, () => goToSegment(one.segment)));
  return node;
}

/** @param {Entry} entry */
function drawSince(entry) {
  const file = entry.since, i = /** @type {number} */ (entry.i);
  const status = file.statuses[i];
  const node = el('div', `r${status === '+' ? ' since-a' : status === '-' ? ' since-d' : ''}`);
  node.dataset.g = status === '+' ? 'now' : status === '-' ? 'then' : '';
  node.dataset.n = `${file.ops[i]}`;
  const body = el('span', '', el('span', 'vh', status === '+' ? 'New since approval: ' : status === '-' ? 'Gone since approval: ' : ''));
  const text = entry.words ?? '';
  code(body, text, '', '', { changed: status !== '=' });
  node.append(body);
  return node;
}

/** @param {Entry} entry */
function drawSinceFile(entry) {
  const node = el('div', 'sincefile', bdi(entry.since.path));
  if (entry.since.meta) node.append(el('span', 'muted', 'was '), bdi(entry.since.meta[0]), el('span', 'muted', ', is '), bdi(entry.since.meta[1]));
  return node;
}

/** @param {Entry} entry @returns {HTMLElement} */
function drawEntry(entry) {
  switch (entry.t) {
    case 'head': return drawHead();
    case 'file': return drawFile(entry);
    case 'card': return drawCard(entry);
    case 'hunk': return drawHunk(entry);
    case 'change': return drawChange(entry);
    case 'elided': return drawElided(entry);
    case 'tail': {
      const node = el('div', 'elided');
      node.append(moreOf(entry));
      return node;
    }
    case 'pair': return drawPair(entry);
    case 'plain': return drawPlain(entry);
    case 'since': return drawSince(entry);
    case 'sincefile': return drawSinceFile(entry);
    case 'same': {
      const node = el('div', 'elided');
      node.append(button('', `Show ${count((entry.to ?? 0) - (entry.from ?? 0) + 1, 'line')} that did not change since`, () => {
        expanded.add(`since ${entry.since}`);
        showRow(app.row, { keep: true });
      }));
      return node;
    }
    case 'same-all': return el('div', 'elided', 'No line of this item changed since its approval: the reason stands above.');
    case 'end': return drawEnd();
    default: return line(entry, entry.i ?? 0);
  }
}

/** Notes what stands in the viewport. @param {Entry[]} entries */
function noteSeen(entries) {
  noteWhere(entries[0]);
  if (document.visibilityState !== 'visible') return;
  for (const entry of entries) {
    if (entry.t === 'card') see(/** @type {number} */ (entry.seg));
    else if (entry.t === 'line') noteLine(/** @type {Lines} */ (entry.h), entry.i ?? 0);
    else if (entry.t === 'pair') {
      for (const i of [entry.i ?? -1, entry.j ?? -1]) if (i >= 0) noteLine(/** @type {Lines} */ (entry.h), i);
    }
  }
}

/** @param {Lines} h @param {number} i */
function noteLine(h, i) {
  const seg = h.segments[i];
  if (seg < 0 || isSeen(seg)) return;
  if ((h.texts[i] ?? '').length > LONG && !opened.has(`${h.pos}:${i}`)) return;
  let state = partly.get(seg);
  if (!state) {
    const { total } = spanOf(h, seg);
    partly.set(seg, state = { bits: new Uint8Array(total), left: total });
  }
  const at = lineOf(h, i);
  if (state.bits[at]) return;
  state.bits[at] = 1;
  if (--state.left === 0) {
    partly.delete(seg);
    see(seg);
  }
}

let lastWhere = -1;
/** Names the file at the top of the viewport. @param {Entry} entry */
function noteWhere(entry) {
  const file = entry.f?.file ?? -1;
  if (file === lastWhere) return;
  lastWhere = file;
  const where = $('where-path');
  where.replaceChildren();
  if (file >= 0) where.append(bdi(app.index.files[file].path));
}

// Moving about.

/** Lays out again what is shown, in place. */
function relay() {
  lastWhere = -2;
  if (!app.since.has(app.row)) {
    for (const one of view.sections) if (one.reads.length && one.entries) lay(one);
    list.set(view.sections, true);
  }
  tell('current');
}

/** Makes a segment of this view the current one. @param {number} seg @param {number} [line] which of its lines, from 0 */
async function goTo(seg, line = 0) {
  const last = app.current, section = sectionOf(seg, line);
  app.current = seg;
  app.picked = null;
  history.replaceState(null, '', `#s${seg}`);
  tell('current');
  if (section && !section.entries) {
    await readSection(section);
    if (app.current !== seg || !view.sections.includes(section)) return;
    list.change(section);
  }
  list.redraw((entry) => entry.seg !== undefined && (entry.seg === last || entry.seg === seg));
  const is = (/** @type {Entry} */ entry, /** @type {number|undefined} */ i) => i !== undefined && i >= 0 && entry.h?.segments[i] === seg && lineOf(entry.h, i) === line;
  const entry = line === 0 ? section?.places.get(seg)
    : section?.entries?.find((one) => (one.t === 'line' && is(one, one.i)) || (one.t === 'pair' && (is(one, one.i) || is(one, one.j)))) ?? section?.places.get(seg);
  if (entry) list.show(entry);
}

/** Goes to a segment wherever it is shown. @param {number} seg @param {number} [line] which of its lines, from 0 */
export async function goToSegment(seg, line = 0) {
  if (app.since.has(app.row) || !view.has(seg)) {
    const choice = app.derived.choices.get(seg);
    const home = app.model.rowNameOf(seg);
    const row = choice && !choice.draft ? choice.item ?? 'accepted' : home;
    app.since.delete(row);
    await showRow(row, { segment: seg, line });
    return;
  }
  const file = app.model.fileOf(seg);
  if (isFolded(file)) {
    folds.set(file, false);
    if (app.index.files[file].generated) for (const id of idsOf(file)) see(id);
    relay();
  }
  await goTo(seg, line);
}

/** Next or previous change. @param {1|-1} step */
export function stepChange(step) {
  if (app.since.has(app.row)) {
    $('code').scrollBy({ top: step * 120 });
    return;
  }
  const at = nthOf(app.current) - 1;
  const next = at < 0 ? 0 : at + step;
  if (next < 0 || next >= view.order.length) {
    announce(step > 0 ? `Last change of ${rowName(app.row)}` : `First change of ${rowName(app.row)}`);
    return;
  }
  goTo(view.order[next]);
}

/** Shows the difference since approval, or the full change. @param {boolean} since */
export function setSince(since) {
  if (since) app.since.add(app.row);
  else app.since.delete(app.row);
  showRow(app.row);
  const row = app.row;
  app.row = '';
  showRow(row);
}

/** The first change that was not shown in full yet; -1 when there is none. */
export function nextUnseen() {
  const all = segmentsShownBy(app.row);
  const at = all.indexOf(app.current);
  return all.slice(at + 1).find((seg) => !isSeen(seg)) ?? all.find((seg) => !isSeen(seg)) ?? -1;
}

/** Builds the pane. */
export function startCode() {
  const scroller = $('code');
  list = new List(scroller, {
    draw: drawEntry,
    height: (entry) => HEIGHTS.get(entry.t) ?? 20,
    key: (entry) => `${entry.t} ${entry.f?.file ?? ''} ${entry.h?.pos ?? ''} ${entry.i ?? ''} ${entry.seg ?? ''} ${entry.from ?? ''}`,
    see: noteSeen,
    need,
  });
  scroller.addEventListener('click', pick);
  scroller.addEventListener('copy', copyCode);
  document.addEventListener('visibilitychange', () => list.soon());
  $('unseen').addEventListener('click', () => {
    const seg = nextUnseen();
    if (seg >= 0) goToSegment(seg);
  });
  $('next').addEventListener('click', () => stepChange(1));
  $('previous').addEventListener('click', () => stepChange(-1));
  $('wrap').addEventListener('click', () => {
    const isOn = scroller.classList.toggle('wrap');
    $('wrap').setAttribute('aria-pressed', String(isOn));
    list.set(view.sections, true);
  });
  $('split').addEventListener('click', () => {
    layout.split = !layout.split;
    $('split').setAttribute('aria-pressed', String(layout.split));
    relay();
  });
  $('show-since').addEventListener('click', () => setSince(true));
  $('show-full').addEventListener('click', () => setSince(false));
  on(['drafts'], () => {
    if (!app.row) return;
    // Drafts may move segments between rows; then the view is another one.
    const now = app.since.has(app.row) ? view.order : segmentsShownBy(app.row);
    const isSame = now.length === view.order.length;
    if (!isSame) showRow(app.row, { keep: true });
    else relay();
  });
  on(['locked'], () => list.redraw((entry) => entry.t === 'change' || entry.t === 'file'));
  on(['seen'], () => {
    // A list that is open must not be replaced under the reader's hands.
    if (document.activeElement?.matches('.change select')) return;
    list.redraw((entry) => entry.t === 'end' || (entry.t === 'change' && !app.derived.items.has(app.row)));
  });
}

/** A click on a line makes its change the current one; with shift it picks lines. @param {MouseEvent} event */
function pick(event) {
  const target = /** @type {HTMLElement} */ (event.target);
  if (target.closest('button, select, summary, a, input')) return;
  if (String(getSelection()) !== '') return;
  const row = /** @type {HTMLElement|null} */ (target.closest('.r, .card, .change'));
  const entry = row && list.entryOf(row);
  if (!entry || entry.seg === undefined || !view.has(entry.seg)) return;
  const seg = entry.seg, last = app.current;
  app.current = seg;
  if (entry.t === 'line' && entry.h) {
    const at = lineOf(entry.h, entry.i ?? 0) + 1;
    app.picked = event.shiftKey && last === seg && app.picked
      ? [Math.min(at, app.picked[0]), Math.max(at, app.picked[1])] : [at, at];
  } else {
    app.picked = null;
  }
  list.redraw((one) => one.seg !== undefined && (one.seg === last || one.seg === seg));
  history.replaceState(null, '', `#s${seg}`);
  tell('current');
}

/** Copies code without what the page adds, and with the characters that marks stand for. @param {ClipboardEvent} event */
function copyCode(event) {
  const selection = getSelection();
  if (!selection || selection.isCollapsed) return;
  const lines = [];
  for (let n = 0; n < selection.rangeCount; n++) {
    const copy = selection.getRangeAt(n).cloneContents();
    for (const node of copy.querySelectorAll('.vh, .eof, .more, .r[aria-hidden]')) node.remove();
    for (const node of copy.querySelectorAll('.mk')) node.replaceWith(rawOf(/** @type {HTMLElement} */ (node).dataset.c ?? ''));
    const rows = copy.querySelectorAll('.r');
    if (rows.length === 0) lines.push(copy.textContent ?? '');
    for (const row of rows) lines.push(row.textContent ?? '');
  }
  event.clipboardData?.setData('text/plain', lines.join('\n'));
  event.preventDefault();
}

/** How many lines the current segment has; 0 for a card. */
export function linesOfCurrent() {
  for (const f of sectionOf(app.current)?.files ?? []) for (const h of f.hunks) if (h.ids.includes(app.current)) return spanOf(h, app.current).total;
  return 0;
}
