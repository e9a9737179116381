import { card, field, form, hidden, problem } from '../http/html/elements'
import type { FormState } from '../http/html/form-state'
import { type Html, html } from '../http/html/html'
import type { Reader } from '../http/html/reader'

export function forgotPasswordPage(
  reader: Reader,
  state: FormState,
  { returnTo, signIn }: { returnTo: string | null; signIn: string },
): Html {
  return card(
    html`<h1>${reader.text('forgot.title')}</h1>
<p class="lead">${reader.text('forgot.lead')}</p>
`,
    problem(state),
    form({
      fields: [
        hidden('return_to', returnTo),
        field(reader, state, { name: 'email', label: reader.text('field.email'), type: 'email', autocomplete: 'username', isFirst: true }),
      ],
      button: reader.text('forgot.button'),
    }),
    html`<p class="below"><a href="${signIn}">${reader.text('forgot.back')}</a></p>
`,
  )
}
