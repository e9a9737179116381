import { notice } from '../http/html/elements'
import { emptyForm, type FormState } from '../http/html/form-state'
import { type Html, html } from '../http/html/html'
import { takeNotice } from '../sessions/notice-cookie'
import type { Visit } from './page-site'

/** Returns the page's body, below the notice of the previous action. If the form has errors, the result has no notice. */
export function showNotice({ ctx, req, res, reader }: Visit, state: FormState, body: Html): Html {
  const word = state === emptyForm ? takeNotice(ctx, req, res) : null
  return html`${notice(word && reader.text(`notice.${word}`))}${body}`
}
