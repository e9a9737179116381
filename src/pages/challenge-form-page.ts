import { card, field, form, or, type Part, problem } from '../http/html/elements'
import type { FormState } from '../http/html/form-state'
import { type Html, html } from '../http/html/html'
import type { Reader } from '../http/html/reader'

/** Asks for a code of the authenticator app or a recovery code. If the account has a passkey, the page also asks for the passkey. */
export function challengePage(reader: Reader, state: FormState, { passkey, signInAgain }: { passkey: Part; signInAgain: string }): Html {
  return card(
    html`<h1>${reader.text('mfa.title')}</h1>
<p class="lead">${reader.text('mfa.lead')}</p>
`,
    problem(state),
    form({
      action: reader.href('/mfa'),
      fields: [
        field(reader, state, {
          name: 'code',
          label: reader.text('field.code'),
          autocomplete: 'one-time-code',
          isCode: true,
          isFirst: true,
        }),
      ],
      button: reader.text('mfa.button'),
    }),
    passkey && html`${or(reader)}${passkey}`,
    html`<p class="below"><a href="${signInAgain}">${reader.text('mfa.again')}</a></p>
`,
  )
}
