/** A small index, as the page would carry it. */
export function sampleIndex(changes = {}) {
  const item = (id, more = {}) => ({
    id, title: `Title of ${id}`, intent: 'Why', files: [], acceptance: [], depends_on: [], fingerprint: `f${id}`,
    approval: 'unreviewed', reasons: [], since: null, approved_by: [], tests: null, ai_review: null, ...more,
  });
  return {
    version: 1, generator: '0', rendered_at: '2026-11-30T12:00:00Z', repository: 'r', forge: 'local',
    issue: { number: 1, title: 't', body: null, author: null, pull_request: null },
    revision: 3, summary: 's', questions: [], base: 'b'.repeat(40), head: 'a'.repeat(40), renames_skipped: false,
    items: [item('P1', { approval: 'approved' }), item('P2', { approval: 'approved', depends_on: ['P1'] }), item('P3')],
    rows: [
      { row: 'P1', changes: 2, added: 1, removed: 1 }, { row: 'P2', changes: 1, added: 1, removed: 0 },
      { row: 'P3', changes: 0, added: 0, removed: 0 }, { row: 'ambiguous', changes: 1, added: 1, removed: 0 },
      { row: 'unplanned', changes: 2, added: 2, removed: 0 },
    ],
    files: [{ path: 'a', status: 'modified', end: 4 }, { path: 'b', status: 'added', end: 6 }],
    n_segments: 6,
    // 0,1: P1; 2: P2; 3: ambiguous; 4,5: unplanned
    segment_rows: [0, 2, 1, 1, 3, 1, 4, 2],
    must_acknowledge: [[['out-of-scope'], [1]], [['bidi', 'invisible'], [4]]],
    ambiguous_owners: [[['P1', 'P3'], [3]]],
    commits: [], choices: [], acknowledgements: [], notes: [], problems: [], findings: [], blockers: [],
    task: null, merge_steps: [], reviewers: [], read_only: null, notices: [],
    ...changes,
  };
}

let n = 0;
export const id = () => `00000000-0000-4000-8000-${String(++n).padStart(12, '0')}`;
export const KEY = `sha256:${'0'.repeat(64)}`;
