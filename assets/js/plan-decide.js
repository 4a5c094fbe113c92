/** Answers, suggestions, the approval, and the file that carries what was drafted. */
import { MAX_TEXT, readFile, writeFile } from './decisions.js';
import { close, nameField, open, p, saveButtons } from './dialog.js';
import { $, announce, bdi, because, button, el, say } from './dom.js';
import { draftPlan, fits, keepPlan, onChange, openNow, plan, planForm, redraw, takeIn, undoPlan } from './plan-state.js';
import { count, decisionWords } from './words.js';

const planFileName = () => `codeboost-decisions-${plan.digest.slice(7, 19)}.json`;

function planFileText() {
  const form = planForm();
  return form ? writeFile(form.form, plan.drafts, {}, plan.reviewer, new Date()) : '';
}

function openPlanSave() {
  if (plan.locked || plan.drafts.length === 0) {
    announce(plan.locked || 'Nothing is drafted yet.');
    return;
  }
  const list = el('ul', 'drafts');
  for (const d of plan.drafts) {
    const words = el('span', '', decisionWords(d));
    const text = d.body ?? d.text;
    if (text) words.append(el('span', 'muted', ': '), bdi(text.slice(0, 200)));
    list.append(el('li', '', words, button('quiet small', 'Undo', () => {
      undoPlan((one) => one.id === d.id);
      if (plan.drafts.length) openPlanSave();
      else close();
    })));
  }
  const saved = () => {
    plan.saved = JSON.stringify(plan.drafts);
    keepPlan();
    redraw();
  };
  open('Save decisions', [
    p(`${count(plan.drafts.length, 'decision')}. They count after: codeboost apply ${planFileName()}`),
    list,
    nameField(plan.reviewer, (name) => { plan.reviewer = name; }),
  ], saveButtons(planFileName(), planFileText, saved));
}

/** A box to tick. @param {string} words @param {Node} [more] */
function tick(words, more) {
  const box = el('input');
  box.type = 'checkbox';
  return { box, node: el('label', 'tick', box, el('span', '', words, more)) };
}

/** Why the plan can not be approved with this page; empty when it can. */
function whyNoApproval() {
  const { index, drafts } = plan;
  if (plan.locked) return plan.locked;
  if (index.approved) return `r${index.revision} is approved already.`;
  if (index.failures) return `The plan has ${count(index.failures, 'failure')}. Mend them first.`;
  if (drafts.some((d) => d.type === 'apply_suggestion')) return 'A drafted suggestion makes another revision; that one is approved later.';
  return '';
}

function openApprove() {
  const why = whyNoApproval();
  if (why) {
    announce(why);
    return;
  }
  const { index } = plan;
  const content = [p(`This fixes revision ${index.revision}. Work and review follow it.`)];
  const fresh = index.commands.filter((one) => !one.allowed);
  const allows = fresh.map((one) => ({ ...tick('', say(el('code'), one.words)), argv: one.argv }));
  if (fresh.length) {
    content.push(
      el('h3', '', `${count(fresh.length, 'new command')}`),
      p('Each that you tick may run from now on, with exactly these arguments. Others stay forbidden, and their checks can not run.', 'muted'),
      ...allows.map((one) => one.node),
    );
  }
  const still = openNow();
  const threads = still.threads ? tick(`Approve although ${count(still.threads, 'thread')} ${still.threads === 1 ? 'is' : 'are'} open`) : null;
  const questions = still.questions ? tick(`Approve although ${count(still.questions, 'question')} ${still.questions === 1 ? 'has' : 'have'} no answer`) : null;
  if (threads || questions) content.push(el('h3', '', 'Still open'));
  for (const one of [threads, questions]) if (one) content.push(one.node);
  const yes = button('main', 'Draft the approval', () => {
    if ((threads && !threads.box.checked) || (questions && !questions.box.checked)) {
      announce('Confirm what is still open, or close this and settle it.');
      return;
    }
    const argv = allows.filter((one) => one.box.checked).map((one) => one.argv);
    const done = draftPlan({
      type: 'plan_approve', revision: index.revision, argv,
      confirm_open_threads: Boolean(threads), confirm_open_questions: Boolean(questions),
    });
    if (done) close();
  });
  open(`Approve plan r${index.revision}`, content, [yes]);
}

function drawStrip() {
  const n = plan.drafts.length;
  const save = $('save'), approve = $('approve');
  save.textContent = n ? `Save decisions (${n})…` : 'Save decisions…';
  because(save, plan.locked || (n ? '' : 'Nothing is drafted yet.'));
  because($('load'), plan.locked);
  const drafted = plan.drafts.find((d) => d.type === 'plan_approve');
  approve.textContent = drafted ? 'Undo approval' : plan.index.approved ? 'Approved' : `Approve plan r${plan.index.revision}…`;
  because(approve, drafted ? '' : whyNoApproval());
  const still = openNow();
  const parts = [];
  if (still.questions) parts.push(count(still.questions, 'open question'));
  if (still.threads) parts.push(count(still.threads, 'open thread'));
  if (drafted) parts.push('approval drafted');
  $('progress').textContent = parts.join(', ');
  const box = $('banners');
  for (const old of box.querySelectorAll('.own')) old.remove();
  if (plan.damaged || (plan.locked && !plan.index.read_only && $('planapp').dataset.checked)) {
    const node = el('div', 'banner bad own', el('span', 'icon', '✕'), p(plan.locked));
    node.setAttribute('role', 'alert');
    box.append(node);
  }
  if (!plan.kept) box.append(el('div', 'banner warn own', el('span', 'icon', '!'), p('This browser does not keep drafts. Save them before you leave.')));
}

/** Under each question: its drafted answer, or a field for one. */
function drawAnswers() {
  for (const block of document.querySelectorAll('#doc [data-question]')) {
    const n = Number(/** @type {any} */ (block).dataset.question);
    const old = document.querySelector(`#doc .reply[data-for="${n}"]`);
    const drafted = plan.drafts.find((d) => d.type === 'answer_question' && d.question === n);
    if (old && old.contains(document.activeElement) && !drafted) continue;
    old?.remove();
    const box = el('form', 'reply');
    box.dataset.for = String(n);
    if (drafted) {
      box.append(el('div', 'said is-draft', el('span', 'muted', 'Your answer, drafted '), button('quiet small', 'Undo', () => undoPlan((d) => d.id === drafted.id)), say(el('p', 'prose'), drafted.text)));
    } else {
      const text = el('textarea');
      text.rows = 2;
      text.setAttribute('aria-label', `Answer to question ${n}`);
      text.placeholder = plan.index.answers[n - 1] ? 'Another answer' : 'Your answer';
      const send = el('button', 'plain small', 'Draft answer');
      send.type = 'submit';
      because(send, plan.locked);
      box.append(text, el('div', 'acts', send));
      box.addEventListener('submit', (/** @type {Event} */ event) => {
        event.preventDefault();
        const answer = text.value.trim();
        if (answer === '' || [...answer].length > MAX_TEXT) {
          announce(answer === '' ? 'Write something first.' : 'The text is too long.');
          return;
        }
        text.blur();
        send.blur();
        draftPlan({ type: 'answer_question', question: n, text: answer });
      });
    }
    (block.nextElementSibling?.classList.contains('answer') ? block.nextElementSibling : block).after(box);
  }
}

function drawSuggestions() {
  for (const node of document.querySelectorAll('#doc [data-suggestion]')) {
    const card = /** @type {any} */ (node);
    const id = card.dataset.suggestion;
    const isOpen = plan.index.suggestions.some(([name, open]) => name === id && open);
    const drafted = plan.drafts.find((d) => d.suggestion === id);
    const acts = card.querySelector('.acts');
    acts.replaceChildren();
    if (drafted) {
      acts.append(el('span', 'drafted muted', `${decisionWords(drafted)}, drafted`), button('quiet small', 'Undo', () => undoPlan((d) => d.id === drafted.id)));
      continue;
    }
    const why = plan.locked || (isOpen ? '' : 'The plan changed since this was suggested.');
    const apply = button('plain small', 'Apply', () => {
      if (why) announce(why);
      else draftPlan({ type: 'apply_suggestion', suggestion: id });
    });
    const dismiss = button('quiet small', 'Dismiss', () => {
      if (why) announce(why);
      else draftPlan({ type: 'dismiss_suggestion', suggestion: id });
    });
    for (const one of [apply, dismiss]) because(one, why);
    acts.append(apply, dismiss);
  }
}

/** @param {File} file */
async function loadPlanFile(file) {
  const read = readFile(await file.text());
  if ('error' in read) {
    announce(read.error);
    return;
  }
  const now = planForm()?.payload;
  if (!now || read.payload.repository !== now.repository || read.payload.task !== now.task) {
    announce('The file belongs to another task.');
    return;
  }
  if (read.payload.revision !== now.revision) {
    announce(`The file was made on revision ${read.payload.revision} of the plan.`);
    return;
  }
  const left = read.file.decisions.filter((d) => !fits(d)).length + read.bad.length;
  const n = takeIn(read.file.decisions);
  announce(`${count(n, 'decision')} taken in${left ? `, ${left} left out: not about this plan` : ''}`);
}

export function startDecide() {
  $('save').addEventListener('click', openPlanSave);
  $('approve').addEventListener('click', () => {
    if (plan.drafts.some((d) => d.type === 'plan_approve')) undoPlan((d) => d.type === 'plan_approve');
    else openApprove();
  });
  const file = $('file');
  $('load').addEventListener('click', () => {
    if (plan.locked) announce(plan.locked);
    else file.click();
  });
  file.addEventListener('change', async () => {
    const chosen = file.files?.[0];
    if (chosen) await loadPlanFile(chosen);
    file.value = '';
  });
  onChange(() => {
    drawStrip();
    drawAnswers();
    drawSuggestions();
  });
}
