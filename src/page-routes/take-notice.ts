import { type Html, html } from '../http/html'
import { notice } from '../pages/elements'
import { emptyForm, type FormState } from '../pages/form-state'
import { takeNotice } from '../session/notice-cookie'
import type { Visit } from './page-site'

/** The page, and above it what was done before it; not above a form that was refused. */
export function showNotice({ ctx, req, res, reader }: Visit, state: FormState, body: Html): Html {
  const word = state === emptyForm ? takeNotice(ctx, req, res) : null
  return html`${notice(word && reader.text(`notice.${word}`))}${body}`
}
