import { card, form, hidden, linkButton, problem } from '../http/html/elements'
import type { FormState } from '../http/html/form-state'
import { type Html, html } from '../http/html/html'
import type { Reader } from '../http/html/reader'

/** Shows one button. Opening the page does not log the person out, because a program could follow a link to the page. */
export function signOutPage(
  reader: Reader,
  state: FormState,
  { email, returnTo }: { email: string | null; returnTo: string | null },
): Html {
  const lead = email === null ? reader.text('sign_out.lead') : reader.text('sign_out.lead_person', { email })
  return card(
    html`<h1>${reader.text('sign_out.title')}</h1>
<p class="lead">${lead}</p>
`,
    problem(state),
    form({ action: reader.href('/logout'), fields: [hidden('return_to', returnTo)], button: reader.text('sign_out.button') }),
    html`<p class="below"><a href="${reader.href('/account')}">${reader.text('sign_out.stay')}</a></p>
`,
  )
}

export function signedOutPage(reader: Reader, loginUrl: string): Html {
  return card(
    html`<h1>${reader.text('signed_out.title')}</h1>
<p class="lead">${reader.text('signed_out.lead')}</p>
`,
    linkButton(loginUrl, reader.text('signed_out.again')),
  )
}
