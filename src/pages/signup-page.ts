import { card, field, form, hidden, or, problem } from '../http/html/elements'
import type { FormState } from '../http/html/form-state'
import { type Html, html } from '../http/html/html'
import type { Reader } from '../http/html/reader'

export interface SignupView {
  readonly returnTo: string | null
  readonly signIn: string
  readonly takesPassword: boolean
  /** The rule of passwords, before the first try. */
  readonly rule: string
  /** The ways to sign up without a form. */
  readonly links: readonly Html[]
}

export function signupPage(reader: Reader, state: FormState, { returnTo, signIn, takesPassword, rule, links }: SignupView): Html {
  return card(
    html`<h1>${reader.text('signup.title')}</h1>
`,
    problem(state),
    form({
      fields: [
        hidden('return_to', returnTo),
        field(reader, state, { name: 'name', label: reader.text('account.name'), autocomplete: 'name', isOptional: true }),
        field(reader, state, { name: 'email', label: reader.text('field.email'), type: 'email', autocomplete: 'username', isFirst: true }),
        takesPassword
          ? field(reader, state, {
              name: 'password',
              label: reader.text('field.password'),
              type: 'password',
              autocomplete: 'new-password',
              hint: rule,
            })
          : null,
      ],
      button: reader.text('signup.button'),
    }),
    ...(links.length === 0 ? [] : [or(reader), html`<div class="ways">${links}</div>`]),
    html`<p class="after">${reader.text('signup.has_account')} <a href="${signIn}">${reader.text('login.button')}</a></p>
`,
  )
}
