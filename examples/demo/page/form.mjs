import { texts } from './texts.mjs'

export const element = (id) => document.getElementById(id)

/**
 * Hands a submitted form's fields to `work`, which answers what was refused: `{ field, text }`, or nothing when all went
 * well. A refusal is said beside its field, where the person is taken, or above the form.
 */
export function onSubmit(form, work) {
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    const before = document.activeElement
    clearProblems(form)
    let refused
    await whileBusy(form.querySelector('button'), async () => {
      refused = await work(Object.fromEntries(new FormData(form))).catch(() => ({ field: null, text: texts.unreachable }))
    })
    if (!refused) return
    showProblem(form, refused)
    // A button that was disabled for a moment has lost the focus.
    const next = form.querySelector('[aria-invalid]') ?? before
    next.focus()
  })
  for (const box of form.querySelectorAll('[data-reveals]')) box.addEventListener('change', () => reveal(form, box.checked))
}

/** Empty, and nothing left to read over a shoulder. */
export function clear(form) {
  form.reset()
  clearProblems(form)
  reveal(form, false)
}

export async function whileBusy(button, work) {
  const isFocused = document.activeElement === button
  button.disabled = true
  try {
    await work()
  } finally {
    button.disabled = false
    // A disabled button loses the focus. It gets it back unless the work has put it elsewhere.
    const holder = document.activeElement
    if (isFocused && (holder === document.body || !holder.checkVisibility())) button.focus()
  }
}

/** One of a page's sections instead of another; a screen reader goes on at its heading. */
export function showInstead(hidden, shown) {
  hidden.hidden = true
  shown.hidden = false
  shown.querySelector('h1').focus()
}

/** Null clears it. */
export function say(id, text) {
  element(id).textContent = text ?? ''
  element(id).hidden = !text
}

function showProblem(form, { field, text }) {
  const input = field && form.elements[field]
  const problem = input ? element(`${input.id}-problem`) : form.querySelector('[role=alert]')
  if (input) input.setAttribute('aria-invalid', 'true')
  problem.textContent = text
  problem.hidden = false
}

function clearProblems(form) {
  for (const input of form.querySelectorAll('[aria-invalid]')) input.removeAttribute('aria-invalid')
  for (const problem of form.querySelectorAll('.problem')) {
    problem.textContent = ''
    problem.hidden = true
  }
}

function reveal(form, isRevealed) {
  for (const input of form.querySelectorAll('[data-password]')) input.type = isRevealed ? 'text' : 'password'
}
