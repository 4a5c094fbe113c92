/** What the page says. Words for people stand here; the rest of the script has none of its own. */

/** Icon, word and meaning of each approval state. */
export const STATES = new Map([
  ['unreviewed', { icon: '○', word: 'Not reviewed', tone: 'neutral' }],
  ['approved', { icon: '✓', word: 'Approved', tone: 'ok' }],
  ['stale', { icon: '!', word: 'Stale', tone: 'warn' }],
]);

/** What a tag says on its change, and what it means. */
export const TAGS = new Map([
  ['bidi', ['Reordered text', 'Bidirectional controls can make code look different from what runs.']],
  ['invisible', ['Invisible characters', 'There are characters here that can not be seen.']],
  ['confusable', ['Look-alike letters', 'An identifier mixes letters that look the same.']],
  ['eol', ['Line ending changed', 'The line ending flipped between LF and CRLF.']],
  ['final-newline', ['Final newline changed', 'The last line gained or lost its line ending.']],
  ['bom', ['Byte-order mark changed', 'A byte-order mark came or went.']],
  ['executable', ['Executable bit changed', 'The file may be run now, or no longer.']],
  ['symlink-target', ['Link target changed', 'The symbolic link points elsewhere.']],
  ['submodule', ['Submodule moved', 'The submodule points to another commit.']],
  ['out-of-scope', ['Out of scope', 'The item does not declare this file.']],
  ['moved', ['Moved', 'These lines stand byte for byte elsewhere in this change.']],
  ['adopted', ['Adopted', 'A person vouched for who made this commit.']],
  ['conflict-agent', ['Conflict resolved by agent', 'An agent resolved a conflict here during a rebase.']],
  ['generated', ['Generated', 'The project declares this file generated.']],
  ['realigned', ['Realigned', 'Two ways to compare disagree about these lines; the later commit counts.']],
]);

/** @param {number} n @param {string} one @param {string} [many] */
export const count = (n, one, many) => `${n.toLocaleString('en')} ${n === 1 ? one : many ?? `${one}s`}`;

/** @param {string} row */
export const rowName = (row) =>
  new Map([['ambiguous', 'Ambiguous'], ['unplanned', 'Unplanned'], ['accepted', 'Accepted']]).get(row) ?? row;

/** The four marks of an item: name, icon, word, tone and the whole sentence. */
/** @typedef {{name: string, icon: string, word: string, tone: string, sentence: string}} Mark */

/**
 * @param {import('./types.js').Item} item
 * @param {import('./types.js').Row|undefined} row
 * @param {{ambiguous: number, out: number, outFiles: number}} n
 * @returns {Mark[]}
 */
export function marks(item, row, n) {
  const none = !row || row.changes === 0;
  /** @type {(name: string, icon: string, word: string, tone: string, rest: string) => Mark} */
  const mark = (name, icon, word, tone, rest) => ({ name, icon, word, tone, sentence: `${name}: ${rest}` });
  const attributed = n.ambiguous > 0
    ? mark('Attributed', '!', `${n.ambiguous} ambiguous`, 'warn', `warning, part of ${count(n.ambiguous, 'ambiguous change')}`)
    : none ? mark('Attributed', '–', 'No changes', 'neutral', 'no changes')
      : mark('Attributed', '✓', 'Attributed', 'ok', 'ok, every change is its own');
  const scope = n.out > 0
    ? mark('In scope', '✕', `${n.out} out of scope`, 'bad', `fail, ${count(n.outFiles, 'file')} outside declared files`)
    : none ? mark('In scope', '–', 'No changes', 'neutral', 'no changes')
      : mark('In scope', '✓', 'In scope', 'ok', 'ok, all in declared files');
  return [attributed, scope, testMark(item, mark), reviewMark(item, mark)];
}

/**
 * @param {import('./types.js').Item} item
 * @param {(name: string, icon: string, word: string, tone: string, rest: string) => Mark} mark
 */
function testMark(item, mark) {
  const tests = item.tests ?? { state: 'not run' };
  const total = tests.total ?? 0;
  switch (tests.state) {
    case 'passed': return mark('Tests', '✓', `${total}/${total} passed`, 'ok', `ok, ${total} of ${total} passed, ${tests.place}`);
    case 'failed': return mark('Tests', '✕', `${tests.failed}/${total} failed`, 'bad', `fail, ${tests.failed} of ${total} failed`);
    case 'out of date': return mark('Tests', '!', 'Out of date', 'warn', 'warning, they ran on other code');
    case 'none defined': return mark('Tests', '–', 'No tests defined', 'neutral', 'none defined');
    default: return mark('Tests', '–', 'Not run', 'neutral', 'not run');
  }
}

/**
 * @param {import('./types.js').Item} item
 * @param {(name: string, icon: string, word: string, tone: string, rest: string) => Mark} mark
 */
function reviewMark(item, mark) {
  const review = item.ai_review ?? { state: 'not run' };
  switch (review.state) {
    case 'open': return mark('AI review', '!', `${review.n} open`, 'warn', `warning, ${count(review.n ?? 0, 'open problem')}`);
    case 'none open': return mark('AI review', '✓', 'No open problems', 'ok', 'ok, no open problems');
    default: return mark('AI review', '–', 'Not run', 'neutral', 'not run');
  }
}

/** @type {Map<string, string>} */
const CHANGES = new Map([
  ['binary', 'Binary content changed'], ['mode', 'Mode changed'], ['empty', 'Empty file'],
  ['rename', 'Renamed'], ['symlink', 'Symbolic link changed'], ['submodule', 'Submodule changed'],
]);

/**
 * What a file-change card is called.
 *
 * @param {string} change names joined by `+`
 * @param {import('./types.js').Side|null} before
 * @param {import('./types.js').Side|null} after
 */
export function changeTitle(change, before, after) {
  const verb = !before ? 'added' : !after ? 'deleted' : '';
  return change.split('+').map((name, n) => {
    let words = CHANGES.get(name) ?? name;
    if (name === 'mode' && after?.mode === '100755') words = verb ? `Executable file ${verb}` : 'Made executable';
    else if (name === 'mode' && before?.mode === '100755') words = verb ? `Executable file ${verb}` : 'No longer executable';
    else if (verb) words = name === 'empty' ? `Empty file ${verb}` : name === 'binary' ? `Binary file ${verb}` : name === 'symlink' ? `Symbolic link ${verb}` : name === 'submodule' ? `Submodule ${verb}` : words;
    return n === 0 ? words : words.charAt(0).toLowerCase() + words.slice(1);
  }).join(', ');
}

/** @param {number|null|undefined} bytes */
export function size(bytes) {
  if (bytes == null) return '–';
  if (bytes < 1024) return count(bytes, 'byte');
  return bytes < 1024 * 1024 ? `${(bytes / 1024).toFixed(1)} KB` : `${(bytes / 1048576).toFixed(1)} MB`;
}

/** @type {Map<string, string>} */
const MODES = new Map([
  ['100644', '100644 file'], ['100755', '100755 executable'], ['120000', '120000 link'], ['160000', '160000 submodule'],
]);

/** @param {string} mode */
export const modeWords = (mode) => MODES.get(mode) ?? mode;

/** What a drafted decision says in lists. @param {import('./types.js').Decision} d */
export function decisionWords(d) {
  switch (d.type) {
    case 'approve': return `Approve ${d.item}`;
    case 'confirm_no_change': return `Confirm that ${d.item} needs no change`;
    case 'withdraw': return `Withdraw the approval of ${d.item}`;
    case 'assign': return `Assign change s${d.segment} to ${d.item}`;
    case 'accept': return `Accept change s${d.segment} as it is`;
    case 'unresolve': return `Undo the choice for change s${d.segment}`;
    case 'acknowledge': return `Acknowledge “${TAGS.get(d.tag)?.[0] ?? d.tag}” on change s${d.segment}`;
    case 'request_change': return `Request a change to ${d.item}`;
    case 'withdraw_request': return 'Withdraw a change request';
    case 'ask': return `Ask about ${d.item}`;
    case 'problem': return 'Accept a problem';
    case 'finding': return `Mark a finding as ${d.state}`;
    case 'reject': return 'Send the change requests';
    case 'merge': return 'Merge';
    case 'resolve_state': return `Answer “${d.state}”: ${d.action}`;
    case 'plan_comment': return `Comment on ${d.lines[0] === d.lines[1] ? `line ${d.lines[0]}` : `lines ${d.lines[0]} to ${d.lines[1]}`}`;
    case 'plan_reply': return 'Reply in a thread';
    case 'plan_resolve': return 'Resolve a thread';
    case 'plan_reopen': return 'Reopen a thread';
    case 'plan_approve': return `Approve plan r${d.revision}`;
    case 'answer_question': return `Answer question ${d.question}`;
    case 'apply_suggestion': return 'Apply a suggestion';
    case 'dismiss_suggestion': return 'Dismiss a suggestion';
    default: return d.type;
  }
}

export const KEYS = [
  ['j', 'Next change'], ['k', 'Previous change'], ['n', 'Next plan item'], ['p', 'Previous plan item'],
  ['a', 'Approve the item'], ['r', 'Request a change'], ['/', 'Search everything'], ['?', 'Show all keys'],
  ['Esc', 'Leave a text field or close'],
];
