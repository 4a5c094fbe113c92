/** Dialogs: keys, issue, blockers, saving, loading, sending, merging, answering. */
import { app, clashes, draft, isUnsaved, keepNow, pageForm, setDrafts, shown, tell, undo } from './app.js';
import { keyOf, showRow } from './code.js';
import { carry, readFile, subject, writeFile } from './decisions.js';
import { close, nameField, open, p, saveButtons, startDialog } from './dialog.js';
import { $, announce, bdi, because, button, el, prose, say } from './dom.js';
import { derive, withDraft } from './layers.js';
import { plain } from './text.js';
import { KEYS, count, decisionWords } from './words.js';

export function openKeys() {
  const keys = el('dl', 'keys');
  for (const [key, words] of KEYS) keys.append(el('dt', '', el('kbd', '', key)), el('dd', '', words));
  open('Keys', [keys, p('Keys rest while a text field has the focus. In the code, a click picks a line and shift extends to another.', 'muted')]);
}

export function openIssue() {
  const { index } = app;
  const content = [];
  const facts = el('dl', 'facts');
  const fact = (/** @type {string} */ name, /** @type {any} */ value) => facts.append(el('dt', '', name), el('dd', '', value));
  if (index.issue.author) fact('Author', bdi(index.issue.author));
  fact('Plan', say(el('span'), index.summary));
  fact('Revision', String(index.revision));
  fact('Base', el('code', '', index.base));
  fact('Head', el('code', '', index.head));
  content.push(facts);
  if (index.questions.length) {
    content.push(el('h3', '', 'Open questions of the plan'), el('ul', '', ...index.questions.map((one) => say(el('li'), one))));
  }
  if (index.issue.body) content.push(el('h3', '', 'Issue'), prose(el('div', 'prose'), index.issue.body));
  if (index.commits.length) {
    const list = el('ul', 'drafts');
    for (const commit of index.commits) {
      const who = commit.item ?? (commit.was ? `made for ${commit.was}, which a later revision removed` : 'not made for this plan');
      list.append(el('li', '', el('span', '', el('code', '', commit.id.slice(0, 8)), ' ', bdi(commit.subject ?? 'unknown'), el('span', 'muted', ` · ${who}`))));
    }
    content.push(el('h3', '', 'Commits that made these changes'), list);
  }
  open(`Issue #${index.issue.number} ${plain(index.issue.title)}`, content);
}

/** @param {(target: import('./types.js').Target) => void} go */
export function openBlockers(go) {
  const list = el('ul', 'blockers');
  for (const one of app.blockers) {
    const line = button('', '', () => {
      close();
      go(one.target);
    });
    line.append(bdi(one.words));
    list.append(el('li', '', line));
  }
  open(count(app.blockers.length, 'blocker'), [
    p(app.drafts.length ? 'What still keeps this from merging, with your drafts counted. Drafts count only after codeboost apply.' : 'What keeps this from merging.', 'muted'),
    list,
  ]);
}

/** A list of drafts, each with its undo. */
function draftList() {
  const list = el('ul', 'drafts');
  for (const d of app.drafts) {
    const words = el('span', '', decisionWords(d));
    const text = d.text ?? d.summary;
    if (text) words.append(el('span', 'muted', ': '), bdi(plain(text).slice(0, 200)));
    if (d.segment !== undefined) {
      words.append(' ', bdi(app.index.files[app.model.fileOf(d.segment)]?.path ?? '', 'muted mono'));
    }
    list.append(el('li', '', words, button('quiet small', 'Undo', () => {
      undo((one) => one.id === d.id);
      if (app.drafts.length) openSave();
      else close();
    })));
  }
  return list;
}

/** The text of the decisions file. */
function fileText() {
  const form = pageForm();
  return form ? writeFile(form.form, app.drafts, shown(), app.reviewer, new Date()) : '';
}

export const fileName = () => `codeboost-decisions-${app.digest.slice(7, 19)}.json`;

function markSaved() {
  app.saved = JSON.stringify(app.drafts);
  keepNow();
  tell('drafts');
}

export function openSave() {
  if (app.locked || app.drafts.length === 0) {
    announce(app.locked || 'Nothing is drafted yet.');
    return;
  }
  const pairs = clashes();
  const content = [
    p(`${count(app.drafts.length, 'decision')}. ${pairs.length ? '' : `They count after: codeboost apply ${fileName()}`}`),
    draftList(),
    nameField(app.reviewer, (name) => { app.reviewer = name; }),
  ];
  if (pairs.length) {
    content.splice(1, 0, el('div', 'reasons', ...pairs.map(([a, b, why]) => p(`✕ “${decisionWords(a)}” and “${decisionWords(b)}”: ${why}. apply refuses both. Undo one of them.`, 'bad'))));
  }
  open('Save decisions', content, saveButtons(fileName(), fileText, markSaved));
}

export function openReject() {
  const { derived } = app;
  if (derived.reject) {
    undo((d) => d.type === 'reject');
    return;
  }
  const list = el('ul', 'drafts');
  for (const note of derived.requests) list.append(el('li', '', el('span', '', `${note.item}: `, prose(el('span'), note.text))));
  for (const d of derived.draftedRequests) list.append(el('li', '', el('span', '', `${d.item}: `, bdi(d.text), el('span', 'muted', ' (drafted)'))));
  const text = el('textarea');
  text.rows = 3;
  const n = derived.requests.length + derived.draftedRequests.length;
  const send = button('main', `Send ${count(n, 'change request')}`, () => {
    if (text.value.trim() === '') {
      announce('Say in a sentence what the next revision is about.');
      text.focus();
    } else if (draft({ type: 'reject', summary: text.value.trim() })) close();
  });
  open('Reject with feedback', [
    p('The next revision of the plan takes these up; only the items they touch run again. Other approvals stay.'),
    list,
    el('label', 'field', el('span', 'muted', 'What the next revision is about'), text),
  ], [send]);
  text.focus();
}

export function openMerge() {
  const { index, derived } = app;
  if (derived.merge) {
    undo((d) => d.type === 'merge');
    return;
  }
  const yes = button('main', 'Draft the merge', () => {
    if (draft({ type: 'merge' })) {
      close();
      openSave();
    }
  });
  open(index.forge === 'github' ? 'Merge PR' : 'Merge', [
    p('This puts the merge into your decisions. After apply, codeboost checks everything again and merges exactly what was reviewed:'),
    el('dl', 'facts', el('dt', '', 'Base'), el('dd', '', el('code', '', index.base)), el('dt', '', 'Head'), el('dd', '', el('code', '', index.head))),
  ], [yes]);
}

/** @param {string} action @param {string} label */
export function openAnswer(action, label) {
  const { task } = app.index;
  if (!task) return;
  if (app.locked) {
    announce(app.locked);
    return;
  }
  const text = el('textarea');
  text.rows = 3;
  const needsText = /guidance|edit|text/.test(action);
  const yes = button('main', plain(label), () => {
    const words = text.value.trim();
    if (needsText && words === '') {
      announce('Write the text first.');
      text.focus();
      return;
    }
    /** @type {any} */
    const decision = { type: 'resolve_state', state: task.state, action };
    if (task.cause) decision.cause = task.cause;
    if (words) decision.text = words;
    if (draft(decision)) close();
  });
  open(plain(label), [
    say(el('p'), task.headline ?? ''),
    el('label', 'field', el('span', 'muted', needsText ? 'Text' : 'A note (may stay empty)'), text),
  ], [yes]);
}

/** Takes in a decisions file. @param {File} file */
export async function loadFile(file) {
  if (app.locked) {
    announce(app.locked);
    return;
  }
  if (file.size > 4 * 1024 * 1024) {
    open('Load decisions', [p('The file is larger than 4 MiB.', 'bad')]);
    return;
  }
  const read = readFile(await file.text());
  if ('error' in read) {
    open('Load decisions', [p(read.error, 'bad')]);
    return;
  }
  const now = pageForm()?.payload;
  if (!now) return;
  if (read.payload.repository !== now.repository || read.payload.task !== now.task) {
    open('Load decisions', [p('The file belongs to another repository or task.', 'bad')]);
    return;
  }
  const byKey = await keysFor(read.file.decisions);
  const { kept, lost } = carry(read.file.decisions, read.payload, now, {
    dependencies: (item) => [...(app.model.dependencies.get(item) ?? [])],
    segmentOf: (key) => byKey.get(key),
    isOpen: isStillOpen,
  });
  let drafts = app.drafts;
  /** @type {{decision: any, reason: string}[]} */
  const replaced = [];
  for (const d of kept) {
    const same = drafts.find((one) => one.id === d.id);
    if (same) continue;
    const clash = drafts.find((one) => subject(one) === subject(d));
    if (clash) replaced.push({ decision: clash, reason: 'the file decides otherwise' });
    const next = withDraft(app.model, drafts, d, subject);
    for (const one of next.dropped) replaced.push({ decision: one, reason: `it does not go with “${decisionWords(d)}”` });
    drafts = next.drafts;
  }
  const nNew = drafts.length - app.drafts.length;
  setDrafts(drafts);
  const same = read.payload.data_digest === now.data_digest;
  const content = [p(`${count(kept.length, 'decision')} of the file ${kept.length === 1 ? 'is' : 'are'} drafted here${nNew < kept.length ? ', some of which were here already' : ''}. ${same ? '' : 'The file was made on another state of the review; only what is unchanged was kept.'}`)];
  const section = (/** @type {string} */ title, /** @type {any[]} */ lines) => {
    if (lines.length) content.push(el('h3', '', title), el('ul', 'drafts', ...lines));
  };
  section('Not taken over', [
    ...lost.map(({ decision, reason }) => el('li', '', el('span', '', say(el('span'), decisionWords(decision)), el('span', 'warn', ` — ${reason}`)))),
    ...read.bad.map(({ value, reason }) => el('li', '', el('span', '', say(el('span'), JSON.stringify(value)?.slice(0, 160) ?? ''), el('span', 'bad', ` — ${reason}`)))),
  ]);
  section('Replaced among the drafts that were here', replaced.map(({ decision, reason }) => el('li', '', el('span', '', decisionWords(decision), el('span', 'warn', ` — ${reason}`)))));
  section('Contradictions', clashes().map(([a, b, why]) => el('li', '', el('span', 'bad', `“${decisionWords(a)}” and “${decisionWords(b)}”: ${why}`))));
  open('Load decisions', content, [button('plain', 'Done', close)]);
}

/** Segments of this page by key, as far as decisions need them. @param {import('./types.js').Decision[]} decisions */
async function keysFor(decisions) {
  const wanted = new Set(decisions.map((d) => d.key).filter(Boolean));
  /** @type {Map<string, number>} */
  const out = new Map();
  // Where the numbers did not change, the named segment is the one.
  for (const d of decisions) {
    if (d.key !== undefined && d.segment < app.index.n_segments && await keyOf(d.segment) === d.key) out.set(d.key, d.segment);
  }
  for (let segment = 0; segment < app.index.n_segments && out.size < wanted.size; segment++) {
    const key = await keyOf(segment);
    if (wanted.has(key)) out.set(key, segment);
  }
  return out;
}

/**
 * Whether what a decision answers is still there to be answered.
 *
 * @param {import('./types.js').Decision} d
 * @param {import('./types.js').Decision[]} before decisions of the same file that come first
 */
function isStillOpen(d, before) {
  const { index, model } = app;
  const recorded = derive(model, []);
  // An assignment in the same file makes a recorded approval stale, and may ask for a mark.
  const then = () => derive(model, before.filter((one) => ['assign', 'accept', 'unresolve', 'withdraw'].includes(one.type)));
  switch (d.type) {
    case 'approve': case 'confirm_no_change': return then().items.get(d.item)?.state !== 'approved';
    case 'withdraw': return model.items.get(d.item)?.approval !== 'unreviewed';
    case 'assign': return recorded.choices.get(d.segment)?.item !== d.item;
    case 'accept': return recorded.choices.get(d.segment)?.item !== null;
    case 'unresolve': return recorded.choices.has(d.segment);
    case 'acknowledge': return then().tagsLeft(d.segment).includes(d.tag);
    case 'withdraw_request': return recorded.requests.some((note) => note.id === d.request);
    case 'request_change': case 'ask': return !index.notes.some((note) => note.id === d.id);
    case 'problem': return index.problems.some((one) => one.id === d.problem && one.state === 'open');
    case 'finding': return index.findings.some((one) => one.id === d.finding && one.state !== d.state);
    case 'reject': return recorded.requests.length > 0 || app.drafts.length > 0;
    case 'resolve_state': return index.task?.state === d.state && (d.cause ?? null) === (index.task?.cause ?? null);
    default: return true;
  }
}

/** Builds the dialogs and their buttons. */
export function startDialogs() {
  $('open-keys').addEventListener('click', openKeys);
  $('open-issue').addEventListener('click', openIssue);
  $('save').addEventListener('click', openSave);
  const file = $('file');
  $('load').addEventListener('click', () => {
    if (app.locked) announce(app.locked);
    else file.click();
  });
  file.addEventListener('change', async () => {
    const chosen = file.files?.[0];
    if (chosen) await loadFile(chosen);
    file.value = '';
  });
  addEventListener('beforeunload', (event) => {
    keepNow();
    if (isUnsaved()) event.preventDefault();
  });
  addEventListener('pagehide', keepNow);
  startDialog([$('dialog'), $('search')]);
}

export { because, showRow };
