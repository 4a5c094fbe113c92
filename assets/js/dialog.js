/** The one dialog of a page, and the buttons that give drafted decisions away. */
import { $, announce, button, el } from './dom.js';

/**
 * Opens the one dialog.
 *
 * @param {string} title
 * @param {(Node|string)[]} content
 * @param {Node[]} [actions]
 */
export function open(title, content, actions = []) {
  const dialog = $('dialog');
  if (dialog.open) dialog.close();
  $('dialog-title').textContent = title;
  $('dialog-content').replaceChildren(...content);
  $('dialog-actions').replaceChildren(...actions);
  dialog.showModal();
  $('dialog-content').scrollTop = 0;
}

export const close = () => $('dialog').close();

/** A paragraph. @param {string} words @param {string} [className] */
export const p = (words, className) => el('p', className, words);

/** Lets dialogs close by a click beside them. @param {any[]} dialogs */
export function startDialog(dialogs) {
  for (const dialog of dialogs) {
    dialog.addEventListener('click', (/** @type {MouseEvent} */ event) => {
      if (event.target === dialog) dialog.close();
    });
  }
  // Enter in a field must not close the dialog.
  $('dialog').addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
    if (event.key === 'Enter' && /** @type {HTMLElement} */ (event.target).tagName === 'INPUT') event.preventDefault();
  });
}

/** A field for the reader's name. @param {string} value @param {(name: string) => void} keep */
export function nameField(value, keep) {
  const name = el('input');
  name.type = 'text';
  name.value = value;
  name.maxLength = 200;
  name.autocomplete = 'name';
  name.addEventListener('input', () => keep(name.value));
  return el('label', 'field', el('span', 'muted', 'Your name, for the record (it proves nothing; a signature does)'), name);
}

/**
 * Buttons that copy the decisions or save them as a file.
 *
 * @param {string} fileName
 * @param {() => string} fileText
 * @param {() => void} markSaved
 * @returns {any[]}
 */
export function saveButtons(fileName, fileText, markSaved) {
  const save = button('main', 'Save decisions', () => {
    const url = URL.createObjectURL(new Blob([fileText()], { type: 'application/json' }));
    const link = el('a');
    link.href = url;
    link.download = fileName;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
    markSaved();
    close();
    announce(`Saved ${fileName}. Next: codeboost apply ${fileName}`);
  });
  const copy = button('plain', 'Copy decisions', async () => {
    try {
      await navigator.clipboard.writeText(fileText());
      markSaved();
      close();
      announce('Copied. Paste it into a file and run: codeboost apply FILE');
    } catch {
      announce('The browser did not allow copying.');
    }
  });
  return [copy, save];
}
