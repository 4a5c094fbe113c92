/**
 * The shapes of the page's data, as `render/src/wire.rs` writes them, and of what is made of them.
 *
 * @typedef {{tag: string, runs?: number[][]}} Tag
 * @typedef {{reason: string, words: string, before: string|null, after: string|null}} Reason
 * @typedef {{path: string, kind: string, renamed_from: string|null, change: string}} Declared
 * @typedef {{type: string, text: string}} Check
 * @typedef {{state: string, total?: number, failed?: number, place?: string, output?: string}} Tests
 * @typedef {{
 *   id: string, title: string, intent: string, files: Declared[], acceptance: Check[],
 *   depends_on: string[], fingerprint: string|null, approval: string, reasons: Reason[],
 *   since: number|null, approved_by: string[], tests: Tests|null,
 *   ai_review: {state: string, n?: number}|null
 * }} Item
 * @typedef {{
 *   row: string, changes: number, added: number, removed: number, attributed?: string,
 *   in_scope?: string
 * }} Row
 * @typedef {{
 *   path: string, old_path?: string, status: string, end: number, generated?: boolean,
 *   whole?: boolean
 * }} FileEntry
 * @typedef {{
 *   id: string, subject: string|null, author: string|null, item: string|null,
 *   was: string|null, adopted_by: string|null
 * }} Commit
 * @typedef {{segment: number, key: string, item: string|null, by: string}} Choice
 * @typedef {{
 *   id: string, kind: string, item: string, segment: number|null, lines: number[]|null,
 *   text: any[], by: string, answer: any[]|null, outdated: boolean
 * }} Note
 * @typedef {{id: string, item: string, state: string, text: any[], source: string}} Problem
 * @typedef {{id: string, subject: string, state: string, location: string|null, text: any[]}} Finding
 * @typedef {{row?: string, segment?: number, notes?: string}|null} Target
 * @typedef {{code: string, words: string, target: Target}} Blocker
 * @typedef {{
 *   version: number, generator: string, rendered_at: string, repository: string, forge: string,
 *   issue: {number: number, title: string, body: any[]|null, author: string|null,
 *     pull_request: string|null},
 *   revision: number, summary: string, questions: string[], base: string, head: string,
 *   renames_skipped: boolean, items: Item[], rows: Row[], files: FileEntry[],
 *   n_segments: number, segment_rows: number[], must_acknowledge: [string[], number[]][],
 *   ambiguous_owners: [string[], number[]][], commits: Commit[], choices: Choice[],
 *   parts: [number, number, number, number, number][][], most: number[],
 *   acknowledgements: [number, string][], notes: Note[], problems: Problem[],
 *   findings: Finding[], blockers: Blocker[],
 *   task: {state: string, headline: string|null, actions: [string, string][],
 *     cause: string|null}|null,
 *   merge_steps: {name: string, state: string, seconds: number|null, detail: string|null}[],
 *   reviewers: string[], read_only: string|null, notices: string[]
 * }} Index
 *
 * @typedef {{
 *   mode: string, kind: string, oid: string, size: number|null, lines: number, binary?: boolean,
 *   target?: string, image?: number, no_image?: string
 * }} Side
 * @typedef {{
 *   old: number, new: number, kinds: string, first: number, before: number, after: number,
 *   counts: number[], context: string, here?: [number, number][],
 *   unended: number[], words: [number, string][], texts: string[], runs: string[]|null
 * }} Hunk
 * @typedef {{
 *   file: number, n: number, similarity?: number, old?: Side, new?: Side, card?: number,
 *   change?: string, crlf?: boolean, left_out?: string, from?: number, more?: boolean,
 *   hunks: Hunk[]
 * }} BlockFile
 * @typedef {{
 *   id: number, commits?: number[], owners?: string[], foreign?: boolean, scope?: string,
 *   scope_owner?: string[], shared_file?: string[], tags?: Tag[], coarse?: boolean, copy?: [number, number]
 * }} SegmentMeta
 * @typedef {{
 *   files: BlockFile[], gaps: number[], shifts: number[], skips: number[], steps: string,
 *   cuts?: [number, number, number][], here?: [number, [number, number][]][],
 *   context_hunks: number[], contexts: string[], unended?: number[], word_lines: number[],
 *   words: string, said: Omit<SegmentMeta, 'id'>[], says: number[],
 *   copies?: [number, number, number][], text: string, runs?: string
 * }} Block
 * @typedef {{
 *   path: string, meta: [string, string]|null, statuses: string, ops: string,
 *   contexts: [number, string][], text: string, unended?: number[]
 * }} SinceFile
 * @typedef {{ranges: [number, number, number][], text: string}} Whole
 *
 * @typedef {{text: string, by: string}} Said
 * @typedef {{
 *   thread: string, snapshot: string, revision: string, lines: [number, number],
 *   quote: string|null, context: string|null, said: Said[], resolved: boolean
 * }} PlanThread
 * @typedef {{
 *   version: number, page: string, issue: number, revision: number, approved: boolean,
 *   snapshot: string, too_large: boolean, blocks: [string, [number, number]][],
 *   questions: string[], answers: (Said|null)[],
 *   commands: {argv: string[], words: string, allowed: boolean}[], failures: number,
 *   threads: PlanThread[], suggestions: [string, boolean][], read_only: string|null
 * }} PlanIndex
 * @typedef {{id: string, type: string, [field: string]: any}} Decision
 * @typedef {{
 *   schema_version: number, form: {payload_b64: string, signature: string}, saved_at: string,
 *   reviewer: string|null, shown: {[row: string]: 'all'|number[]}, decisions: Decision[]
 * }} DecisionsFile
 * @typedef {{
 *   schema_version: number, data_digest: string, repository: string, task: string|null,
 *   items: {[item: string]: {fingerprint: string, state: string}},
 *   base: string, head: string|null, revision: number|null
 * }} Form
 */
export {};
