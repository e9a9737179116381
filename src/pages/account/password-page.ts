import { card, field, form, type Part, problem } from '../../http/html/elements'
import type { FormState } from '../../http/html/form-state'
import { type Html, html } from '../../http/html/html'
import type { Reader } from '../../http/html/reader'

export interface PasswordView {
  /** False if the account has no password yet. */
  readonly hasPassword: boolean
  /** The address of the account. Password managers store the address with the password. */
  readonly email: string
  /** The rule of passwords, before the first try. */
  readonly rule: string
  readonly formOf: Part
}

export function passwordPage(reader: Reader, state: FormState, { hasPassword, email, rule, formOf }: PasswordView): Html {
  return card(
    html`<h1>${reader.text(hasPassword ? 'password.title' : 'password.first_title')}</h1>
<p class="lead">${reader.text(hasPassword ? 'password.lead' : 'password.first_lead')}</p>
`,
    problem(state),
    form({
      fields: [
        formOf,
        html`<input type="text" name="username" value="${email}" autocomplete="username" hidden readonly>`,
        hasPassword
          ? field(reader, state, {
              name: 'current_password',
              label: reader.text('password.current'),
              type: 'password',
              autocomplete: 'current-password',
              isFirst: true,
            })
          : null,
        field(reader, state, {
          name: 'new_password',
          label: reader.text('password.new'),
          type: 'password',
          autocomplete: 'new-password',
          hint: rule,
          isFirst: !hasPassword,
        }),
        field(reader, state, {
          name: 'confirm_password',
          label: reader.text('password.confirm'),
          type: 'password',
          autocomplete: 'new-password',
        }),
      ],
      button: reader.text(hasPassword ? 'password.button' : 'password.first_button'),
    }),
  )
}
